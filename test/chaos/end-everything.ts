import { stopRedisProcesses } from '../support/redis-process.js';
import { killReplicas } from '../support/replica-process.js';

/** Ends what a round leaves running that jest has given up. */
export function endEverythingAfterwards(): void {
  afterAll(async () => {
    await killReplicas();
    await stopRedisProcesses();
  });
}
