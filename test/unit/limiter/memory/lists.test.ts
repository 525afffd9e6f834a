import type { QueueList } from '../../../../src/limiter/queue-order.js';
import { group, idOf, InstanceInMemory, lane } from '../../../support/instance-in-memory.js';

// What does not depend on the kind of the lists of a key.

/** One request for each window. */
const ONE = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 100 };
const INTERACTIVE = lane('interactive', 30_000);
const BATCH = lane('batch');
const [A, B] = [group('a'), group('b')];

/** A key of which the first window is taken. */
function fullKey(limits: Partial<typeof ONE> = {}): InstanceInMemory {
  const key = new InstanceInMemory({ ...ONE, ...limits });
  key.check('first', undefined, { hits: limits.maxRequests ?? 1 });
  return key;
}

describe('after other rules', () => {
  test('everybody keeps the place, and the kind that has had waiters for longer goes first', () => {
    const key = fullKey();
    for (const name of ['f1', 'f2']) key.wait(name);
    key.withdraw('f1');
    key.wait('f3');
    key.wait('a1', A);
    key.wait('i1', INTERACTIVE);
    key.wait('a2', A);
    key.wait('f4');
    expect(key.instance.examine(0, 9).lists?.map(({ kind }) => kind)).toEqual([
      ...['fifo', 'group', 'lane'],
    ]);
    expect(key.servedInWindowsOf(1000)).toEqual(['f2', 'f3', 'f4', 'a1', 'a2', 'i1']);
  });

  test('a kind whose last waiter leaves begins again behind the others', () => {
    const key = fullKey();
    key.wait('a1', A);
    key.wait('b1', BATCH);
    key.withdraw('a1');
    key.wait('a2', A);
    expect(key.servedInWindowsOf(1000)).toEqual(['b1', 'a2']);
  });

  test('a newcomer passes nobody who waits by the rules before, and those of later kinds', () => {
    const rules = { ...ONE, maxRequests: 3 };
    const before = new InstanceInMemory(rules);
    before.check('x');
    before.wait('large', undefined, { hits: 3 });
    expect(before.check('i', INTERACTIVE)).toBe('denied');

    const later = new InstanceInMemory(rules);
    later.check('x');
    later.wait('large', BATCH, { hits: 3 });
    later.wait('group', A);
    expect(later.check('i', INTERACTIVE)).toBe('approved');
    expect(later.check('b', BATCH)).toBe('denied');
    expect(later.check('none')).toBe('denied');
  });

  test('a queue that was empty has one list again if nobody has a lane or a group', () => {
    const key = fullKey();
    key.wait('i1', INTERACTIVE);
    key.withdraw('i1');
    key.wait('f1');
    expect(key.instance.examine(0, 9)).not.toHaveProperty('lists');
    key.wait('i2', INTERACTIVE);
    expect(key.servedInWindowsOf(1000)).toEqual(['f1', 'i2']);
  });

  test('a request that is known keeps its place when the queue gets lists, and can leave it', () => {
    const key = fullKey();
    for (const name of ['k1', 'k2']) key.checkKnown(name);
    key.wait('a1', A);
    expect(key.checkKnown('k2', A)).toBe('takes_over');
    expect(key.instance.statusOf(0, idOf('k2'))).toMatchObject({ position: 2 });
    expect(key.release('k1')).toBe(true);
    expect(key.servedInWindowsOf(1000)).toEqual(['k2', 'a1']);
  });
});

describe('a request that waits', () => {
  test('is told its position in its list, and the least time until its turn', () => {
    const key = fullKey();
    for (const [i, list] of [A, A, B, group('c'), A].entries()) key.checkKnown(`k${i}`, list);
    const statuses = [0, 1, 2, 4].map((i) => key.instance.statusOf(0, idOf(`k${i}`)));
    expect(statuses).toEqual([
      { status: 'waiting', position: 1, waitMillis: 1000 },
      { status: 'waiting', position: 2, waitMillis: 2000 },
      { status: 'waiting', position: 1, waitMillis: 1000 },
      { status: 'waiting', position: 3, waitMillis: 3000 },
    ]);
  });

  test('is told so as if all were served whose turn has come', () => {
    const key = fullKey();
    for (const name of ['a1', 'a2', 'a3']) key.checkKnown(name, A);
    key.checkKnown('b1', B);
    key.now = 1500;
    const statuses = ['a1', 'a3', 'b1'].map((name) => key.instance.statusOf(1500, idOf(name)));
    expect(statuses).toEqual([
      { status: 'waiting', position: 1, waitMillis: 0 },
      { status: 'waiting', position: 3, waitMillis: 1500 },
      { status: 'waiting', position: 1, waitMillis: 500 },
    ]);
    expect(key.instance.waiting).toBe(4);
  });

  test.each<[string, QueueList, QueueList]>([
    ['lane', INTERACTIVE, BATCH],
    ['group', A, B],
  ])('is denied at once by those of its %s alone', (_kind, own, other) => {
    const key = fullKey();
    for (const name of ['x1', 'x2', 'x3']) key.wait(name, other);
    expect(key.wait('own1', own, { maxWaitMillis: 1000 })).toBe('waiting');
    expect(key.wait('own2', own, { maxWaitMillis: 1999 })).toBe('turn_too_late');
    expect(key.wait('own2', own, { maxWaitMillis: 2000 })).toBe('waiting');
    expect(key.instance.turns.millisToTurn(0, { list: own })).toBe(3000);
    expect(key.instance.turns.millisToTurn(0, { list: other })).toBe(4000);
  });

  test('is not denied for what a head of another list needs', () => {
    const algorithm = { name: 'token_bucket', burst: 4 } as const;
    const key = new InstanceInMemory({ ...ONE, maxRequests: 10, algorithm });
    key.check('x', B, { hits: 4 });
    key.wait('large', B, { hits: 4 });
    expect(key.instance.turns.millisToTurn(0, { list: A })).toBe(100);
    expect(key.instance.turns.exactRoomAt).toBe(100);
    key.now = 150;
    key.instance.settle(150);
    expect(key.instance.turns.exactRoomAt).toBe(400);
    // It may leave before.
    expect(key.instance.turns.millisToTurn(150, { list: A, hits: 2 })).toBe(50);
  });
});

describe('an examination', () => {
  test('has the queue in the order of turns, and leaves it as it is', () => {
    const key = fullKey();
    for (const [i, list] of [A, A, A, B, B].entries()) {
      key.now = i;
      key.wait(`n${i}`, list);
    }
    const turns = key.instance.examine(10, 4).queue.map(({ waitedMillis }) => 10 - waitedMillis);
    expect(turns).toEqual([0, 3, 1, 4]);
    key.now = 0;
    expect(key.servedInWindowsOf(1000)).toEqual(['n0', 'n3', 'n1', 'n4', 'n2']);
  });

  test('names the lists, the longest first, of two of the same length the one whose head came first', () => {
    const key = fullKey();
    expect(key.instance.examine(0, 0)).not.toHaveProperty('lists');
    for (const [i, list] of [B, A, A, group('')].entries()) key.wait(`n${i}`, list);
    key.now = 250;
    key.wait('lane', INTERACTIVE);
    expect(key.instance.examine(250, 0)).toMatchObject({
      listCount: 4,
      lists: [
        { kind: 'group', name: 'a', waiting: 2, oldestMillis: 250 },
        { kind: 'group', name: 'b', waiting: 1, oldestMillis: 250 },
        { kind: 'group', name: '', waiting: 1, oldestMillis: 250 },
        { kind: 'lane', name: 'interactive', waiting: 1, oldestMillis: 0 },
      ],
    });
  });

  test('names 20 lists at most', () => {
    const key = fullKey();
    for (let i = 0; i < 25; i += 1) key.wait(`n${i}`, group(`g${i}`));
    const { lists, listCount } = key.instance.examine(0, 0);
    expect([lists?.length, listCount]).toEqual([20, 25]);
  });
});

test('a position in a list is exact up to 1000, and at least as great behind that', () => {
  const key = fullKey({ maxRequestsInQueue: 3000 });
  for (let i = 1; i <= 1500; i += 1) key.checkKnown(`n${i}`, A);
  const positionOf = (i: number): unknown => key.instance.statusOf(0, idOf(`n${i}`));
  for (let i = 1; i <= 400; i += 1) key.withdraw(`n${i}`);
  expect(positionOf(1400)).toMatchObject({ position: 1000 });
  for (let i = 1410; i <= 1419; i += 1) key.withdraw(`n${i}`);
  // The 10 that have left count.
  expect(positionOf(1500)).toMatchObject({ position: 1100 });
});
