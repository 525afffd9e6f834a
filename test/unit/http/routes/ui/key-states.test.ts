import { fillOf, needOf, statesOf } from '../../../../../src/http/routes/ui/key-states.js';
import type { InstanceState } from '../../../../../src/limiter/limiter.js';
import { type Algorithm, FIXED_WINDOW, ownLimit } from '../../../../../src/limiter/limits.js';
import { type DeniedKey, NO_DENIALS } from '../../../../../src/service/deciding/recent-denials.js';

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

const key = (used: number, more: Partial<InstanceState> = {}): InstanceState => ({
  ...{ key: 'key', maxRequestsInQueue: 5, held: 0, denied: 0, waiting: 0, pausedMillis: 0 },
  limits: [{ ...ownLimit(1000, 10), used, millisToWindowEnd: 1000 }],
  ...more,
});
const run = (perSecond: number): DeniedKey => ({
  ...{ key: 'key', perSecond, count: 1, byReason: NO_DENIALS, lastReason: 'limit_reached' },
  ...{ isShadow: false, sinceMillis: 1, lastMillis: 1 },
});

test('a key has all of its states, in the order in which they need a person', () => {
  const all = key(1, { pausedMillis: 1, waiting: 5, held: 1 });
  expect(statesOf(all, run(1))).toEqual([
    'paused',
    'denied',
    'queue_full',
    'waiting',
    'held',
    'used',
  ]);
  expect(statesOf(key(0, { denied: 1 }), undefined)).toEqual(['denied']);
  expect(statesOf(key(0, { maxRequestsInQueue: 0 }), undefined)).toEqual([]);
  const closed = { ...ownLimit(1000, 0), used: 0, millisToWindowEnd: 1000 };
  expect(statesOf(key(0, { limits: [closed] }), undefined)).toEqual([]);
});

test('a key is as full as its fullest limit', () => {
  const [own] = key(1).limits;
  const further = { ...own, name: 'hour', used: 9 };
  expect(fillOf({ limits: [own, further] })).toBe(0.9);
  expect(fillOf({ limits: [{ ...own, used: 11 }, further] })).toBe(1);
});

test('a key needs a person by its first state, and then by how much it has of that', () => {
  const needs = [
    needOf(key(9, { pausedMillis: 2000 }), run(99)),
    needOf(key(9, { pausedMillis: 1000 }), run(99)),
    needOf(key(9, { waiting: 5 }), run(2)),
    needOf(key(9, { waiting: 5 }), run(1)),
    needOf(
      key(9, { denied: 1, limits: [{ ...key(9).limits[0], windowMillis: 86_400_000 }] }),
      undefined,
    ),
    needOf(key(9, { waiting: 6 }), undefined),
    needOf(key(9, { waiting: 5 }), undefined),
    needOf(key(9, { waiting: 4 }), undefined),
    needOf(key(0, { held: 2 }), undefined),
    needOf(key(9, { held: 1 }), undefined),
    needOf(key(9), undefined),
    needOf(key(1), undefined),
    needOf(key(0), undefined),
  ];
  expect(needs).toEqual(needs.toSorted((a, b) => b - a));
  expect(new Set(needs).size).toBe(needs.length);
});
