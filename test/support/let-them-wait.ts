import type { TestReplica } from './script-harness.js';

/** Approves a and b, and lets c and e wait on `r1`, and d on `r2`, with the tickets 1, 3 and 2. */
export async function letThemWait(r1: TestReplica, r2: TestReplica): Promise<void> {
  await r1.check(['a', 'b']);
  await r1.checkOrWait(['c']);
  await r2.checkOrWait(['d']);
  await r1.checkOrWait(['e']);
}
