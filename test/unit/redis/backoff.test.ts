import { readFileSync } from 'node:fs';

import { backoffMillis } from '../../../src/redis/backoff.js';

test('the back-off doubles after each failure, up to a quarter of a second', () => {
  const waits = [1, 2, 3, 4, 5, 50].map((failures) => backoffMillis(failures, 30));
  expect(waits).toEqual([30, 60, 120, 240, 250, 250]);
});

test('a key that Redis lost recovers for longer than the longest wait', () => {
  const lua = readFileSync(new URL('../../../lua/lib/recovery.lua', import.meta.url), 'utf8');
  const recoveryMillis = Number(/RECOVERY_MILLIS = (\d+)/.exec(lua)?.[1]);
  const longestWait = backoffMillis(1000, 1);
  // The same time again is for the call itself, and for a late replica.
  expect(recoveryMillis).toBeGreaterThanOrEqual(2 * longestWait);
});
