import { backoffMillis } from '../../../../src/redis/shared/backoff.js';

test('the back-off doubles after each failure, up to a quarter of a second', () => {
  const waits = [1, 2, 3, 4, 5, 50].map((failures) => backoffMillis(failures, 30));
  expect(waits).toEqual([30, 60, 120, 240, 250, 250]);
});
