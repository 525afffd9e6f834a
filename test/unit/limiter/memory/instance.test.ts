import type { KeyLimits } from '../../../../src/limiter/limiter.js';
import { type Algorithm, FIXED_WINDOW } from '../../../../src/limiter/limits.js';
import { Instance } from '../../../../src/limiter/memory/instance.js';
import type { InstanceDecision } from '../../../../src/limiter/memory/instance-decision.js';
import { MemoryBudget } from '../../../../src/limiter/memory/memory-budget.js';
import { keyLimits } from '../../../support/limits.js';

// What callers of a limiter can see of an instance is in test/support/behaviour.

const LIMITS = { windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 2 };

/** UUIDs for the names that tests use. */
const START = '0197c3a2-8b1e-4f00-8d5a-';
const idOf = (name: string): string => START + Buffer.from(name).toString('hex').padStart(12, '0');

const BOUNDS = { maxIdsPerKey: Infinity, maxHoldsPerKey: Infinity };

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

const check = (now: number, name: string, overrides: Overrides = {}): InstanceDecision =>
  state.check(now, idOf(name), { key: 'k', canWait: false, ...overrides });
const checkOrWait = (now: number, name: string): InstanceDecision =>
  state.check(now, idOf(name), { key: 'k', canWait: true });

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

  test('is kept by a check that finds the queue full', () => {
    check(0, 'a', { maxRequests: 1, maxRequestsInQueue: 0 });
    check(1000, 'b');
    expect(checkOrWait(1500, 'c')).toBe('queue_full');
    expect(state.isIdle(4999)).toBe(false);
  });
});

describe('a peek', () => {
  test('sees waiters approved whose turn has come, and approves nobody', () => {
    const granted: string[] = [];
    state = new Instance('k', 0, policy, BOUNDS, new MemoryBudget(Infinity), (ids) => {
      granted.push(...ids);
    });
    check(0, 'a');
    check(0, 'b');
    checkOrWait(0, 'c');
    const before = state.examine(1000, 9);
    expect(state.peek(1000, { hits: 1 })).toMatchObject({ decision: 'approved', turnMillis: 0 });
    expect(state.peek(1000, { hits: 2 })).toMatchObject({ decision: 'denied', turnMillis: 1000 });
    expect(state.examine(1000, 9)).toEqual(before);
    expect(granted).toEqual([]);
    state.settle(1000);
    expect(granted).toEqual([idOf('c')]);
  });

  test.each<[string, Algorithm]>([
    ['fixed windows', FIXED_WINDOW],
    ['a sliding window', { name: 'sliding_window', steps: 10 }],
    ['a token bucket', { name: 'token_bucket', burst: 2 }],
  ])('leaves every id and hold of %s where it is', (_name, algorithm) => {
    policy.current = keyLimits({ ...LIMITS, algorithm });
    state = new Instance('k', 0, policy, BOUNDS, new MemoryBudget(Infinity), () => undefined);
    const held = { key: 'k', canWait: false, holdMillis: 5000 };
    state.check(0, idOf('held'), held);
    check(0, 'a');
    checkOrWait(0, 'b');
    policy.current = keyLimits({ ...LIMITS, maxRequests: 5 });
    for (const now of [0, 900, 1000, 4000, 9000]) state.peek(now, { hits: 1, holdMillis: 1000 });
    policy.current = keyLimits({ ...LIMITS, algorithm });
    expect(state.waiting).toBe(1);
    expect([state.release(0, idOf('a')), state.release(0, idOf('held'))]).toEqual([true, true]);
    expect(state.inspect(0)).toMatchObject({ held: 0, waiting: 0, denied: 0 });
  });
});
