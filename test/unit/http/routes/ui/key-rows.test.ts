import { fillOf } from '../../../../../src/http/routes/ui/key-rows.js';
import { type Algorithm, FIXED_WINDOW, ownLimit } from '../../../../../src/limiter/limits.js';

const fillWith = (used: number, maximum: number, algorithm: Algorithm): number =>
  fillOf({
    limits: [{ ...ownLimit(1000, maximum, algorithm), used, millisToWindowEnd: 1000 }],
  });

test.each<[algorithm: Algorithm, used: number, maximum: number, fill: number]>([
  [FIXED_WINDOW, 3, 12, 0.25],
  [{ name: 'sliding_window', steps: 10 }, 3, 12, 0.25],
  [{ name: 'token_bucket', burst: 6 }, 3, 12, 0.5],
  // The burst in force is at most the maximum.
  [{ name: 'token_bucket', burst: 6 }, 3, 4, 0.75],
  [{ name: 'token_bucket', burst: 6 }, 0, 0, 1],
])('a limit with %j is full by what may count at once', (algorithm, used, maximum, fill) => {
  expect(fillWith(used, maximum, algorithm)).toBe(fill);
});
