import { type ScriptHarness, type TestReplica, useScriptHarness } from './script-harness.js';
import type { RedisForTests } from './use-redis.js';
import { useWakeRecorder, type WakeRecorder } from './wake-recorder.js';

/** Approves a and b, and lets c and e wait on `r1`, and d on `r2`, with the tickets 1, 3 and 2. */
export async function letThemWait(r1: TestReplica, r2: TestReplica): Promise<void> {
  await r1.check(['a', 'b']);
  await r1.checkOrWait(['c']);
  await r2.checkOrWait(['d']);
  await r1.checkOrWait(['e']);
}

/** A key, its replicas, and what was published on its channel since they wait. */
export interface KeyWithWaiters {
  readonly key: ScriptHarness;
  readonly r1: TestReplica;
  readonly r2: TestReplica;
  readonly wakes: WakeRecorder;
}

/** A key that begins again for each test, with the approvals and waiters of {@link letThemWait}. */
export function useKeyWithWaiters(redis: RedisForTests): KeyWithWaiters {
  const key = useScriptHarness(redis);
  const recordWakes = useWakeRecorder(redis);
  const [r1, r2] = [key.replica('r1'), key.replica('r2')];
  let wakes: WakeRecorder;
  beforeEach(async () => {
    await letThemWait(r1, r2);
    wakes = await recordWakes(key.names.wakeChannel);
  });
  return { key, r1, r2, wakes: { take: () => wakes.take(), read: () => wakes.read() } };
}
