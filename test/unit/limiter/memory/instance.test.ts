import { randomUUID } from 'node:crypto';

import type { KeyLimits } from '../../../../src/limiter/limiter.js';
import { DEFAULT_ALGORITHM } from '../../../../src/limiter/kinds/kinds.js';
import { type Limit, ownLimit } from '../../../../src/limiter/limits.js';
import { Instance } from '../../../../src/limiter/memory/instance.js';
import { MemoryBudget } from '../../../../src/limiter/memory/memory-budget.js';
import { keyLimits } from '../../../support/limits.js';
import fc from '../../../support/properties.js';
import { ShortCalendar } from '../../../support/short-calendar.js';
import { Approvals } from '../../../../src/limiter/memory/approvals.js';
import { Heap, type HeapItem } from '../../../../src/limiter/memory/heap.js';
import { Window } from '../../../../src/limiter/memory/limits/window.js';

describe('an instance', () => {
  // What callers of a limiter can see of an instance is in test/support/behaviour.

  const LIMITS = { windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 2 };

  /** UUIDs for the names that tests use. */
  const START = '0197c3a2-8b1e-4f00-8d5a-';
  const idOf = (name: string): string =>
    START + Buffer.from(name).toString('hex').padStart(12, '0');

  const BOUNDS = { maxIdsPerKey: Infinity, maxHoldsPerKey: Infinity, maxGroupsPerKey: Infinity };

  let policy: { current: KeyLimits };
  let state: Instance;
  beforeEach(() => {
    policy = { current: keyLimits(LIMITS) };
    state = new Instance('k', 0, policy, BOUNDS, new MemoryBudget(Infinity), () => undefined);
  });

  interface Overrides {
    maxRequests?: number;
    maxRequestsInQueue?: number;
  }

  const check = (now: number, name: string, overrides: Overrides = {}): string =>
    state.check(now, idOf(name), { key: 'k', canWait: false, ...overrides });

  test('a limit with a calendar that was read again is the same limit, so that its turns stay', () => {
    const rules = (windowMillis: number): KeyLimits => {
      const more = { counts: 'hits', keepsReleased: false } as const;
      const calendar = new ShortCalendar('any', windowMillis, 1_000_000);
      const algorithm = { name: 'fixed_window', calendar } as const;
      const further = [
        { name: 'a', windowMillis: 1000, maximum: 1, ...more },
        { name: 'b', windowMillis: 86_400_000, maximum: 9, algorithm, ...more },
      ];
      return keyLimits({ ...LIMITS, windowMillis, further });
    };
    policy = { current: rules(1000) };
    state = new Instance('k', 0, policy, BOUNDS, new MemoryBudget(Infinity), () => undefined);
    expect(check(0, 'a')).toBe('approved');
    policy.current = rules(5000);
    // Without the limit a it would come with the new window of the key.
    expect(state.turns.millisToTurn(0, {}, 1)).toBe(2000);
  });

  test('overrides that equal the ceilings of changed rules stay, and greater ones are dropped', () => {
    const withCeilings = (maxRequests: number, maxRequestsInQueue: number): KeyLimits =>
      keyLimits({ ...LIMITS, ceilings: { maxRequests, maxRequestsInQueue, windowMillis: 0 } });
    check(0, 'a', { maxRequests: 9, maxRequestsInQueue: 7 });
    policy.current = withCeilings(9, 7);
    check(0, 'b');
    expect(state.inspect(0)).toMatchObject({ limits: [{ maximum: 9 }], maxRequestsInQueue: 7 });
    policy.current = withCeilings(8, 6);
    check(0, 'c');
    expect(state.inspect(0)).toMatchObject({ limits: [{ maximum: 2 }], maxRequestsInQueue: 2 });
  });

  describe('a key', () => {
    test.each([
      ['a release', () => state.release(3500, idOf('a'))],
      ['a settle', () => state.settle(3500)],
      ['an inspection', () => state.inspect(3500)],
      ['the withdrawal of an unknown id', () => state.withdraw(3500, idOf('x'))],
    ])('is not kept by %s', (_name, call) => {
      check(0, 'a');
      call();
      expect(state.isIdle(3999)).toBe(false);
      expect(state.isIdle(4000)).toBe(true);
    });
  });
});

const limitOf = (name: string): Limit => ({
  name,
  windowMillis: 1000,
  maximum: 100,
  algorithm: DEFAULT_ALGORITHM,
  counts: 'hits',
  keepsReleased: false,
});

test('an approval for whose last id there is no memory takes from no limit, whatever they keep', () => {
  const limits = [
    ownLimit(1000, 100),
    { ...limitOf('a'), keepsReleased: true },
    limitOf('b'),
  ] as const;
  const bounds = { maxIdsPerKey: 100, maxHoldsPerKey: 1, maxGroupsPerKey: 1 };
  const approvals = new Approvals(0, limits, bounds, new MemoryBudget(2 * 64));
  expect(approvals.add(0, randomUUID(), {})).toBe(false);
  expect(approvals.limits.map(({ used }) => used)).toEqual([0, 0, 0]);
});

test('a correction for which there is too little memory changes no limit', () => {
  /** Fills three tables of ids, and corrects one with this much memory. */
  const correctWith = (bytes: number): { result: unknown; used: number[] } => {
    const approvals = new Approvals(
      0,
      [ownLimit(1000, 100), limitOf('a'), limitOf('b')],
      { maxIdsPerKey: 100, maxHoldsPerKey: 1, maxGroupsPerKey: 1 },
      new MemoryBudget(bytes),
    );
    const id = randomUUID();
    expect(approvals.add(0, id, {})).toBe(true);
    const result = approvals.amend(0, id, { hits: 7 });
    return { result, used: approvals.limits.map(({ used }) => used) };
  };
  // A table has 4 places of 16 bytes, and of 20 with hits. Both exist for a moment.
  expect(correctWith(3 * 64)).toEqual({ result: 'store_full', used: [1, 1, 1] });
  expect(correctWith(3 * 64 + 80)).toEqual({ result: 'store_full', used: [1, 1, 1] });
  expect(correctWith(3 * 64 + 96)).toEqual({ result: 'store_full', used: [1, 1, 1] });
  expect(correctWith(3 * 64 + 112)).toEqual({ result: {}, used: [7, 7, 7] });
});

const times = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 60 });

interface Moment extends HeapItem {
  at: number;
}

test('the items of a heap come first to last, whichever have changed or left', () => {
  fc.assert(
    fc.property(times, times, (list, changes) => {
      const heap = new Heap<Moment>((one, other) => one.at < other.at);
      const moments = list.map((at) => ({ at, index: 0 }));
      for (const moment of moments) heap.add(moment);
      for (const at of changes) {
        const moment = heap.all[at];
        if (!moment) continue;
        moment.at = 50 - at;
        heap.update(moment);
      }
      const gone = heap.all.at(-1);
      if (gone) heap.remove(gone);
      const found: number[] = [];
      for (let next = heap.first; next; next = heap.first) {
        found.push(next.at);
        heap.remove(next);
      }
      const left = moments.filter((moment) => moment !== gone).map(({ at }) => at);
      expect(found).toEqual(left.sort((a, b) => a - b));
    }),
  );
});

test('stays anchored to its first start, whenever it is rolled', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.integer({ min: 1, max: 100_000 }),
      fc.array(fc.nat({ max: 1_000_000 })),
      (start, millis, steps) => {
        const window = new Window(start, millis);
        let now = start;
        for (const step of steps) {
          now += step;
          window.rollTo(now, millis);
          expect((window.end - start) % millis).toBe(0);
          expect(now).toBeLessThan(window.end);
          expect(now).toBeGreaterThanOrEqual(window.end - millis);
        }
      },
    ),
  );
});

test.each([
  [1499, 1500, 1000],
  [1500, 1800, 300],
  [1799, 1800, 300],
  [1800, 2100, 300],
  [2600, 2800, 300],
])('a changed length counts from the last boundary on: at %d', (now, end, millis) => {
  const window = new Window(500, 1000);
  window.rollTo(now, 300);
  expect([window.end, window.millis]).toEqual([end, millis]);
});
