import fc from 'fast-check';

import type { QueueList } from '../../../../src/limiter/queue-order.js';
import { extent } from '../../../support/extent.js';
import { group, InstanceInMemory, lane, idOf } from '../../../support/instance-in-memory.js';
import { TurnsAccount } from '../../../support/turns-account.js';

/** One request for each window. */
const ONE = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 100 };

const INTERACTIVE = lane('interactive', 30_000);

const BATCH = lane('batch');

const LANES = [lane('first', 700), lane('second', 250), lane('last')];
const GROUPS = [group('a'), group('b', 2), group('c', 3), group('d', 10)];
const WINDOW_MILLIS = 100;

type Step =
  | { readonly kind: 'check'; readonly list: number; readonly hits: number }
  /** `which` counts from the one that waits for longest, or back from the latest approval. */
  | { readonly kind: 'leave' | 'release'; readonly which: number }
  | { readonly kind: 'advance'; readonly millis: number };

/** Makes the steps, and goes on until nobody waits. */
function run(
  lists: readonly QueueList[],
  maxRequests: number,
  steps: readonly Step[],
): { readonly violations: readonly string[]; readonly served: number } {
  const limits = { windowMillis: WINDOW_MILLIS, maxRequests, maxRequestsInQueue: 1000 };
  const key = new InstanceInMemory(limits);
  const account = new TurnsAccount();
  const approved: string[] = [];
  let served = 0;
  const noteGranted = (): void => {
    const granted = key.granted.splice(0);
    account.granted(granted);
    approved.push(...granted);
    served += granted.length;
  };
  const check = (id: string, step: Step & { readonly kind: 'check' }): void => {
    const list = lists[step.list % lists.length]!;
    const hits = Math.min(step.hits, maxRequests);
    const decision = key.wait(id, list, { hits });
    noteGranted();
    const passed = account.waiting.filter((each) => each.list === list);
    account.joined({ id, list, hits, arrival: key.now });
    if (decision !== 'approved') return;
    if (passed.length > 0)
      account.violations.push(`${id} is approved at once, and passes its list`);
    account.granted([id]);
    approved.push(id);
  };
  const leave = (which: number): void => {
    const { id } = account.waiting.at(which) ?? {};
    if (id === undefined) return;
    account.left(id);
    key.withdraw(id);
    noteGranted();
  };
  /** A group alone gets everything. */
  const judgeRoom = (): void => {
    const { next } = account;
    const room = maxRequests - key.used[0]!;
    if (next.length > 0 && next.every(({ hits }) => hits <= room)) {
      account.violations.push(`${room} hits are left, and the next one fits`);
    }
    key.instance.settle(key.now);
    noteGranted();
    const left = maxRequests - key.used[0]!;
    if (left < room) account.violations.push(`${room - left} hits were left to one that fits`);
  };
  for (const [i, step] of steps.entries()) {
    if (step.kind === 'check') check(String(i), step);
    else if (step.kind === 'leave') leave(step.which);
    else if (step.kind === 'advance') key.instance.settle((key.now += step.millis));
    else key.release(approved.at(-1 - step.which) ?? '');
    noteGranted();
    judgeRoom();
  }
  while (account.waiting.length > 0) {
    key.instance.settle((key.now += WINDOW_MILLIS));
    noteGranted();
    judgeRoom();
  }
  return { violations: account.violations, served };
}

const hits = fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.constantFrom(2, 3, 6, 12));
const stepsOf = (...kinds: ('leave' | 'release')[]): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({
          kind: fc.constant('check' as const),
          list: fc.nat({ max: 11 }),
          hits,
        }),
      },
      {
        weight: 2 * kinds.length,
        arbitrary: fc.record({
          kind: fc.constantFrom(...kinds, 'release' as const),
          which: fc.oneof(fc.nat({ max: 2 }), fc.nat({ max: 12 })),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          kind: fc.constant('advance' as const),
          millis: fc.oneof(fc.nat({ max: 20 }), fc.nat({ max: 300 })),
        }),
      },
    ),
    { maxLength: 120, size: 'max' },
  );
const maximum = fc.integer({ min: 1, max: 12 });
const numRuns = extent(100, 1000);

test.each([
  ['lanes', 'leave', LANES, stepsOf('leave', 'release')],
  ['groups', 'leave', GROUPS, stepsOf('leave', 'release')],
  ['groups', 'stay', GROUPS, stepsOf('release')],
] as const)('turns of %s whose waiters %s are as promised', (_, __, lists, steps) => {
  let served = 0;
  fc.assert(
    fc.property(steps, maximum, (drawn, max) => {
      const { violations, served: ofRun } = run(lists, max, drawn);
      expect(violations).toEqual([]);
      served += ofRun;
    }),
    { numRuns },
  );
  expect(served).toBeGreaterThan(numRuns);
});

test('those that come once, without end, do not starve one that waits', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }),
      (others, needed, drawn) => {
        const limits = { windowMillis: WINDOW_MILLIS, maxRequests: 5, maxRequestsInQueue: 1000 };
        const key = new InstanceInMemory(limits);
        key.check('first', GROUPS[0], { hits: 5 });
        let came = 0;
        const comeOnce = (): void => {
          const name = `n${came}`;
          key.wait(name, group(name), { hits: drawn[came % drawn.length]! });
          came += 1;
        };
        for (let i = 0; i < others; i += 1) comeOnce();
        key.wait('waits', group('waits'), { hits: needed });
        const served: string[] = [];
        while (!served.includes('waits')) {
          const granted = key.settleAt(key.now + WINDOW_MILLIS);
          served.push(...granted);
          granted.forEach(comeOnce);
          // Each that comes is behind the virtual time by its own request, of one hit at least.
          expect(served.length).toBeLessThanOrEqual(others * (needed + 1) + 5);
        }
      },
    ),
    { numRuns },
  );
});

/** A key of which the first window is taken. */
function fullKey(limits: Partial<typeof ONE> = {}): InstanceInMemory {
  const key = new InstanceInMemory({ ...ONE, ...limits });
  key.check('first', BATCH, { hits: limits.maxRequests ?? 1 });
  return key;
}

test('of two heads with the same key, the earlier one goes first', () => {
  const key = fullKey({ windowMillis: 100_000 });
  key.now = 1;
  key.wait('b', BATCH);
  key.now = 30_001;
  key.wait('i', INTERACTIVE);
  expect(key.settleAt(100_000)).toEqual(['b']);
});

describe('a newcomer', () => {
  test('that would be the next head is approved at once, and does not wait for one that needs more', () => {
    const key = fullKey({ maxRequests: 3 });
    key.settleAt(1000);
    key.check('a', BATCH);
    expect(key.wait('large', BATCH, { hits: 3 })).toBe('waiting');
    expect(key.peek(INTERACTIVE)).toMatchObject({ decision: 'approved', turnMillis: 0 });
    expect(key.peek(BATCH)).toMatchObject({ decision: 'denied', turnMillis: 1000 });
    expect(key.check('x', BATCH)).toBe('denied');
    expect(key.check('y', INTERACTIVE)).toBe('approved');
    expect(key.wait('z', INTERACTIVE)).toBe('approved');
    expect(key.wait('full', INTERACTIVE)).toBe('waiting');
    expect(key.settleAt(2000)).toEqual(['full']);
    expect(key.settleAt(3000)).toEqual(['large']);
  });

  test('joins its lane if somebody waits there', () => {
    const key = fullKey({ maxRequests: 3 });
    key.settleAt(1000);
    key.check('a', BATCH);
    key.wait('large', INTERACTIVE, { hits: 3 });
    expect(key.wait('small', INTERACTIVE)).toBe('waiting');
    // Its head start is longer than when the others came.
    expect(key.wait('other', lane('interactive', 90_000))).toBe('waiting');
    expect(key.wait('batch', BATCH)).toBe('waiting');
  });

  test('passes nobody whose arrival less the head start is the same', () => {
    const key = fullKey({ windowMillis: 100_000, maxRequests: 3 });
    key.settleAt(100_000);
    key.check('a', BATCH);
    key.wait('large', BATCH, { hits: 3 });
    key.now = 130_000;
    expect(key.check('same', INTERACTIVE)).toBe('denied');
    expect(key.check('before', lane('interactive', 30_001))).toBe('approved');
  });

  test('passes nobody in a paused key', () => {
    const key = new InstanceInMemory({ ...ONE, maxRequests: 3 });
    key.instance.pause(0, 5000);
    key.wait('b', BATCH);
    expect(key.check('i', INTERACTIVE)).toBe('paused');
  });

  test('passes nobody whose approval lacks a place for its id, or for its hold', () => {
    for (const bounds of [{ maxIdsPerKey: 1 }, { maxHoldsPerKey: 1 }]) {
      const key = new InstanceInMemory({ ...ONE, maxRequests: 9 }, bounds);
      const held = { holdMillis: 1000 };
      const isOfId = 'maxIdsPerKey' in bounds;
      key.check('a', BATCH, isOfId ? {} : held);
      expect(key.wait('i', INTERACTIVE, isOfId ? {} : held)).toBe('waiting');
      expect(key.check('b', BATCH, isOfId ? held : {})).toBe('denied');
    }
  });
});

test('a check takes over the place that its request has, whatever lane it names', () => {
  const key = fullKey();
  key.wait('b1', BATCH);
  key.checkKnown('known', BATCH);
  expect(key.checkKnown('known', INTERACTIVE)).toBe('takes_over');
  key.wait('b2', BATCH);
  expect(key.servedInWindowsOf(1000)).toEqual(['b1', 'known', 'b2']);
});

test('waiters keep the head start with which they came', () => {
  const key = fullKey({ windowMillis: 100_000 });
  key.wait('b', BATCH);
  key.now = 50_000;
  key.wait('old', lane('interactive'));
  key.wait('new', lane('interactive', 60_000));
  key.now = 0;
  expect(key.servedInWindowsOf(100_000)).toEqual(['b', 'old', 'new']);
});

describe('groups', () => {
  const [A, B, C] = [group('a'), group('b'), group('c')];

  /** A key of which the first window is taken. */
  function fullKey(limits: Partial<typeof ONE> = {}): InstanceInMemory {
    const key = new InstanceInMemory({ ...ONE, ...limits });
    key.check('first', A, { hits: limits.maxRequests ?? 1 });
    return key;
  }

  test('a group does not pay for those of it who have left', () => {
    const key = fullKey();
    const names = Array.from({ length: 20 }, (_, i) => `a${i}`);
    for (const name of names) key.wait(name, A);
    for (const name of ['b1', 'b2', 'b3']) key.wait(name, B);
    for (const name of names.slice(0, -1)) key.withdraw(name);
    expect(key.servedInWindowsOf(1000)).toEqual(['a19', 'b1', 'b2', 'b3']);
  });

  test('a group whose head leaves has its turn by what the next one needs', () => {
    const key = fullKey({ maxRequests: 5 });
    key.wait('large', A, { hits: 5 });
    key.wait('small', A);
    for (const name of ['b1', 'b2', 'b3']) key.wait(name, B, { hits: 2 });
    key.withdraw('large');
    expect(key.settleAt(1000)).toEqual(['small', 'b1', 'b2']);
  });

  test('a group that comes back has its turn after those who wait', () => {
    const key = fullKey();
    key.wait('a1', A);
    for (const name of ['b1', 'b2', 'b3']) key.wait(name, B);
    expect(key.settleAt(1000)).toEqual(['a1']);
    key.wait('a2', A);
    expect(key.servedInWindowsOf(1000)).toEqual(['b1', 'b2', 'a2', 'b3']);
  });

  test('nothing is owed once nobody waits', () => {
    const key = fullKey();
    for (const name of ['a1', 'a2', 'a3']) key.wait(name, A);
    key.servedInWindowsOf(1000);
    key.check('again', A);
    key.wait('b1', B, { hits: 1 });
    key.wait('a4', A);
    key.wait('b2', B);
    key.wait('a5', A);
    expect(key.servedInWindowsOf(1000)).toEqual(['b1', 'a4', 'b2', 'a5']);
  });

  test('while nobody waits, approvals change no tag', () => {
    const key = new InstanceInMemory({ ...ONE, maxRequests: 3 });
    for (let i = 1; i <= 3; i += 1) expect(key.check(`x${i}`, A)).toBe('approved');
    for (const name of ['a1', 'a2']) key.wait(name, A);
    key.wait('b1', B);
    expect(key.settleAt(1000)).toEqual(['a1', 'b1', 'a2']);
  });

  test('a group has places of its own, within those of the queue', () => {
    const key = fullKey({ maxRequestsInQueue: 4 });
    const of = (name: string): ReturnType<typeof group> => group(name, 1, 2);
    for (const name of ['a1', 'a2']) expect(key.wait(name, of('a'))).toBe('waiting');
    expect(key.wait('a3', of('a'))).toBe('queue_full_of_group');
    for (const name of ['b1', 'b2']) expect(key.wait(name, of('b'))).toBe('waiting');
    expect(key.wait('a3', of('a'))).toBe('queue_full');
    expect(key.wait('c1', of('c'))).toBe('queue_full');
    key.withdraw('b1');
    expect(key.wait('a3', of('a'))).toBe('queue_full_of_group');
    key.withdraw('a1');
    expect(key.wait('a3', of('a'))).toBe('waiting');
  });

  test('a peek changes no turn, and sees those served whose turn has come', () => {
    const key = fullKey({ maxRequests: 2 });
    for (const name of ['a1', 'a2', 'a3']) key.wait(name, A);
    for (const name of ['b1', 'b2', 'b3']) key.wait(name, B);
    key.now = 1000;
    // Of each group, two wait on.
    expect(key.peek(A)).toMatchObject({ decision: 'denied', turnMillis: 2000 });
    expect(key.peek(C)).toMatchObject({ decision: 'denied', turnMillis: 1000 });
    expect(key.instance.waiting).toBe(6);
    expect(key.settleAt(1000)).toEqual(['a1', 'b1']);
    key.peek(A);
    expect(key.servedInWindowsOf(1000)).toEqual(['a2', 'b2', 'a3', 'b3']);
  });

  test('a thousand groups that join and leave have their turns in the order of their tags', () => {
    const key = fullKey({ maxRequestsInQueue: 1000 });
    const names = Array.from({ length: 1000 }, (_, i) => `g${i}`);
    const sharesOf = (i: number): number => ((i * 7919) % 1000) + 1;
    for (const [i, name] of names.entries()) key.wait(name, group(name, sharesOf(i)));
    const left = names.filter((_, i) => i % 3 > 0);
    for (const [i, name] of names.entries()) if (i % 3 === 0) key.withdraw(name);
    const expected = left.toSorted(
      (a, b) => sharesOf(names.indexOf(b)) - sharesOf(names.indexOf(a)),
    );
    expect(key.servedInWindowsOf(1000)).toEqual(expected);
  });

  test('a large request that leaves gives its group no more than its next turn', () => {
    const key = new InstanceInMemory({ ...ONE, maxRequests: 6 });
    // One hit is left of each window.
    key.check('held', A, { hits: 5, holdMillis: 1_000_000 });
    key.check('first', A);
    key.wait('large', A, { hits: 6 });
    for (const name of ['a1', 'a2', 'a3']) key.wait(name, A);
    for (let i = 1; i <= 8; i += 1) key.wait(`b${i}`, B);
    for (let i = 1; i <= 4; i += 1) expect(key.settleAt(i * 1000)).toEqual([`b${i}`]);
    key.withdraw('large');
    for (const name of ['c1', 'c2', 'c3']) key.wait(name, C);
    expect(key.servedInWindowsOf(1000)).toEqual([
      ...['a1', 'a2', 'b5', 'c1', 'a3', 'b6', 'c2', 'b7', 'c3', 'b8'],
    ]);
  });
});

describe('lists of either kind', () => {
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
});
