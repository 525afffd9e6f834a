import type { KeyLimits } from '../../../../src/limiter/limiter.js';
import { keyLimits } from '../../../support/limits.js';
import { Instance, type InstanceDecision } from '../../../../src/limiter/memory/instance.js';
import { MemoryBudget } from '../../../../src/limiter/memory/memory-budget.js';

const LIMITS = { windowMillis: 1000, maxRequests: 2, maxRequestsInQueue: 2 };

/** UUIDs for the names that tests use. */
const START = '0197c3a2-8b1e-4f00-8d5a-';
const idOf = (name: string): string => START + Buffer.from(name).toString('hex').padStart(12, '0');
const nameOf = (id: string): string =>
  Buffer.from(id.slice(START.length), 'hex').toString().replaceAll('\0', '');

const BOUNDS = { maxIdsPerKey: Infinity, maxHoldsPerKey: Infinity };

let granted: string[];
let room: MemoryBudget;
let policy: { current: KeyLimits };
let state: Instance;
beforeEach(() => {
  granted = [];
  room = new MemoryBudget(Infinity);
  policy = { current: keyLimits(LIMITS) };
  state = new Instance('k', 0, policy, BOUNDS, room, (ids) => granted.push(...ids.map(nameOf)));
});

interface Overrides {
  maxRequests?: number;
  maxRequestsInQueue?: number;
}

const check = (now: number, name: string, overrides: Overrides = {}): InstanceDecision =>
  state.check(now, idOf(name), { key: 'k', canWait: false, ...overrides });
const checkOrWait = (now: number, name: string, overrides: Overrides = {}): InstanceDecision =>
  state.check(now, idOf(name), { key: 'k', canWait: true, ...overrides });

/** The state of the key as of now, with what it says of its own limit. */
const inspect = (now: number) => {
  const { limits, maxRequestsInQueue, ...rest } = state.inspect(now);
  const [{ windowMillis, maximum: maxRequests, used }] = limits;
  return { ...rest, used, limits: { windowMillis, maxRequests, maxRequestsInQueue } };
};

/** Fills the window and the queue of {@link LIMITS}: a and b approved, c and d waiting. */
function fill(now = 0): void {
  check(now, 'a');
  check(now, 'b');
  checkOrWait(now, 'c');
  checkOrWait(now, 'd');
}

describe('check', () => {
  test('approves while the window has room, whether or not the request can wait', () => {
    expect(check(0, 'a')).toBe('approved');
    expect(checkOrWait(0, 'b')).toBe('approved');
    expect(inspect(0)).toMatchObject({
      used: 2,
      held: 0,
      denied: 0,
      waiting: 0,
      pausedMillis: 0,
    });
  });

  test('denies and counts a check that cannot wait when the window is full', () => {
    fill();
    expect(check(1, 'e')).toBe('denied');
    expect(check(999, 'f')).toBe('denied');
    expect(inspect(999)).toMatchObject({ used: 2, held: 0, denied: 2 });
  });

  test('queues a check that can wait when the window is full', () => {
    check(0, 'a');
    check(0, 'b');
    expect(checkOrWait(0, 'c')).toBe('waiting');
    expect(checkOrWait(0, 'd')).toBe('waiting');
    expect(state.waiting).toBe(2);
    expect(inspect(0)).toMatchObject({
      used: 2,
      held: 0,
      denied: 0,
      waiting: 2,
      pausedMillis: 0,
    });
  });

  test('answers queue_full when the queue is full, and does not count a denial', () => {
    fill();
    expect(checkOrWait(0, 'e')).toBe('queue_full');
    expect(inspect(0)).toMatchObject({
      used: 2,
      held: 0,
      denied: 0,
      waiting: 2,
      pausedMillis: 0,
    });
  });

  test('serves the waiters of an earlier window before itself', () => {
    fill();
    expect(checkOrWait(1000, 'e')).toBe('waiting');
    expect(granted).toEqual(['c', 'd']);
    expect(inspect(1000)).toMatchObject({ used: 2, waiting: 1 });
  });

  test('starts a window empty', () => {
    fill();
    check(500, 'e');
    state.withdraw(500, idOf('c'));
    state.withdraw(500, idOf('d'));
    expect(check(1000, 'f')).toBe('approved');
    expect(inspect(1000)).toMatchObject({ used: 1, held: 0, denied: 0 });
  });

  test('keeps windows anchored to the first check', () => {
    check(999, 'a');
    check(999, 'b');
    expect(check(1000, 'c')).toBe('approved');
    expect(state.roomAt).toBe(2000);
    check(2500, 'd');
    expect(state.roomAt).toBe(3000);
  });
});

describe('overrides', () => {
  test('hold from the check that brings them', () => {
    expect(check(0, 'a', { maxRequests: 1 })).toBe('approved');
    expect(check(0, 'b')).toBe('denied');
    expect(checkOrWait(0, 'c', { maxRequestsInQueue: 0 })).toBe('queue_full');
    expect(checkOrWait(0, 'd')).toBe('queue_full');
  });

  test('stay in later windows, and a check that leaves them out changes nothing', () => {
    check(0, 'a', { maxRequests: 1, maxRequestsInQueue: 7 });
    check(3000, 'b');
    expect(inspect(3000).limits).toEqual({
      windowMillis: 1000,
      maxRequests: 1,
      maxRequestsInQueue: 7,
    });
  });

  test('that equal the ceilings of changed rules stay, and greater ones are dropped', () => {
    check(0, 'a', { maxRequests: 9, maxRequestsInQueue: 7 });
    policy.current = keyLimits({
      ...LIMITS,
      ceilings: { maxRequests: 9, maxRequestsInQueue: 7, windowMillis: 0 },
    });
    check(0, 'b');
    expect(inspect(0).limits).toMatchObject({ maxRequests: 9, maxRequestsInQueue: 7 });
    policy.current = keyLimits({
      ...LIMITS,
      ceilings: { maxRequests: 8, maxRequestsInQueue: 6, windowMillis: 0 },
    });
    check(0, 'c');
    expect(inspect(0).limits).toMatchObject(LIMITS);
  });

  test('can be set one without the other', () => {
    check(0, 'a', { maxRequests: 9 });
    expect(inspect(0).limits).toMatchObject({ maxRequests: 9, maxRequestsInQueue: 2 });
    check(0, 'b', { maxRequestsInQueue: 0 });
    expect(inspect(0).limits).toMatchObject({ maxRequests: 9, maxRequestsInQueue: 0 });
  });

  test('raising the maximum serves the queue before the check that raises it', () => {
    fill();
    expect(checkOrWait(10, 'e', { maxRequests: 3 })).toBe('waiting');
    expect(granted).toEqual(['c']);
    expect(check(20, 'f', { maxRequests: 6 })).toBe('approved');
    expect(granted).toEqual(['c', 'd', 'e']);
    expect(inspect(20)).toMatchObject({ used: 6, waiting: 0 });
  });

  test('lowering the maximum takes no approval back, and approves no waiter until there is room', () => {
    fill();
    expect(check(10, 'e', { maxRequests: 1 })).toBe('denied');
    expect(inspect(10)).toMatchObject({ used: 2, waiting: 2 });
    expect(state.release(10, idOf('a'))).toBe(true);
    expect(granted).toEqual([]);
    expect(state.release(10, idOf('b'))).toBe(true);
    expect(granted).toEqual(['c']);
    state.settle(1000);
    expect(granted).toEqual(['c', 'd']);
  });

  test('lowering the maximum of the queue removes no waiter', () => {
    fill();
    expect(checkOrWait(10, 'e', { maxRequestsInQueue: 1 })).toBe('queue_full');
    state.settle(1000);
    expect(granted).toEqual(['c', 'd']);
  });
});

describe('settle', () => {
  test('does nothing before the window ends', () => {
    fill();
    state.settle(999);
    expect(granted).toEqual([]);
    expect(state.roomAt).toBe(1000);
  });

  test('serves the queue in order at the end of the window, as far as it has room', () => {
    fill();
    checkOrWait(0, 'e', { maxRequestsInQueue: 3 });
    state.settle(1000);
    expect(granted).toEqual(['c', 'd']);
    expect(state.waiting).toBe(1);
    state.settle(2000);
    expect(granted).toEqual(['c', 'd', 'e']);
    expect(state.waiting).toBe(0);
  });
});

describe('release', () => {
  test('makes room for another check', () => {
    check(0, 'a');
    check(0, 'b');
    expect(state.release(10, idOf('a'))).toBe(true);
    expect(inspect(10).used).toBe(1);
    expect(check(10, 'c')).toBe('approved');
    expect(check(10, 'd')).toBe('denied');
  });

  test('serves the head of the queue', () => {
    fill();
    expect(state.release(10, idOf('b'))).toBe(true);
    expect(granted).toEqual(['c']);
    expect(inspect(10)).toMatchObject({ used: 2, waiting: 1 });
  });

  test('of the same id a second time finds nothing and changes nothing', () => {
    fill();
    state.release(10, idOf('a'));
    const before = inspect(10);
    expect(state.release(10, idOf('a'))).toBe(false);
    expect(inspect(10)).toEqual(before);
    expect(granted).toEqual(['c']);
  });

  test.each(['unknown', idOf('x'), idOf('c'), idOf('j').toUpperCase()])(
    'of an id that was not approved (%s) finds nothing',
    (requestId) => {
      fill();
      expect(state.release(10, requestId)).toBe(false);
      expect(inspect(10)).toMatchObject({ used: 2, waiting: 2 });
    },
  );

  test('of an id approved in an earlier window finds nothing', () => {
    check(0, 'a');
    check(1000, 'b');
    expect(state.release(1000, idOf('a'))).toBe(false);
    expect(inspect(1000).used).toBe(1);
  });

  test('finds an approval until the last millisecond of its window', () => {
    check(0, 'a');
    expect(state.release(999, idOf('a'))).toBe(true);
  });
});

describe('withdraw', () => {
  test('takes a waiter out of the queue', () => {
    fill();
    state.withdraw(10, idOf('c'));
    expect(state.waiting).toBe(1);
    state.settle(1000);
    expect(granted).toEqual(['d']);
  });

  test('releases an approval, and the head of the queue gets it', () => {
    fill();
    state.withdraw(10, idOf('a'));
    expect(granted).toEqual(['c']);
    expect(inspect(10)).toMatchObject({ used: 2, waiting: 1 });
  });

  test('of an unknown id changes nothing', () => {
    fill();
    state.withdraw(10, idOf('x'));
    expect(inspect(10)).toMatchObject({ used: 2, waiting: 2 });
    expect(granted).toEqual([]);
  });

  test('in a later window serves the others', () => {
    fill();
    state.withdraw(1000, idOf('c'));
    expect(granted).toEqual(['d']);
  });
});

describe('inspect', () => {
  test('reports a window that has ended as empty, and leaves its waiters', () => {
    fill();
    check(0, 'e');
    expect(inspect(999)).toEqual({
      key: 'k',
      limits: LIMITS,
      used: 2,
      held: 0,
      denied: 1,
      waiting: 2,
      pausedMillis: 0,
    });
    expect(inspect(1000)).toMatchObject({
      used: 0,
      held: 0,
      denied: 0,
      waiting: 2,
      pausedMillis: 0,
    });
  });

  test('changes nothing', () => {
    fill();
    inspect(1000);
    expect(granted).toEqual([]);
    expect(state.roomAt).toBe(1000);
    expect(inspect(999)).toMatchObject({ used: 2, waiting: 2 });
  });
});

describe('a key', () => {
  test('is idle at the end of the third window without a check, and not before', () => {
    check(999, 'a');
    expect(state.isIdle(3999)).toBe(false);
    expect(state.isIdle(4000)).toBe(true);
  });

  test('is kept by a check in its third idle window', () => {
    check(0, 'a');
    check(3999, 'b');
    expect(state.isIdle(6999)).toBe(false);
    expect(state.isIdle(7000)).toBe(true);
  });

  test('is kept by a denied check', () => {
    check(0, 'a', { maxRequests: 1 });
    check(1000, 'b');
    expect(check(1500, 'c')).toBe('denied');
    expect(state.isIdle(4999)).toBe(false);
    expect(state.isIdle(5000)).toBe(true);
  });

  test('is kept by a check that finds the queue full', () => {
    check(0, 'a', { maxRequests: 1, maxRequestsInQueue: 0 });
    check(1000, 'b');
    expect(checkOrWait(1500, 'c')).toBe('queue_full');
    expect(state.isIdle(4999)).toBe(false);
  });

  test.each([
    ['a release', () => state.release(3500, idOf('a'))],
    ['a settle', () => state.settle(3500)],
    ['an inspection', () => inspect(3500)],
    ['the withdrawal of an unknown id', () => state.withdraw(3500, idOf('x'))],
  ])('is not kept by %s', (_name, call) => {
    check(0, 'a');
    call();
    expect(state.isIdle(3999)).toBe(false);
    expect(state.isIdle(4000)).toBe(true);
  });

  test('is kept by its waiters, however long they wait', () => {
    fill();
    expect(state.isIdle(4000)).toBe(false);
    expect(state.isIdle(1_000_000)).toBe(false);
  });

  test('is idle three windows after the last window that began with a waiter', () => {
    fill();
    state.settle(5000);
    expect(granted).toEqual(['c', 'd']);
    expect(state.isIdle(8999)).toBe(false);
    expect(state.isIdle(9000)).toBe(true);
  });
});
