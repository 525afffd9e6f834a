import { stopRedisProcesses } from '../redis-process.js';
import { killReplicas } from '../replica-process.js';

/** Ends what a round leaves running that jest has given up. */
export function endEverythingAfterwards(): void {
  afterAll(async () => {
    await killReplicas();
    await stopRedisProcesses();
  });
}
