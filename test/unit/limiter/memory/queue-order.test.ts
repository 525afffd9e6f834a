import type { QueueList } from '../../../../src/limiter/queue-order.js';
import { extent } from '../../../support/extent.js';
import { group, InstanceInMemory, lane, idOf } from '../../../support/instance-in-memory.js';
import fc from '../../../support/properties.js';
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

describe('a newcomer', () => {
  test('that would be the next head is approved at once, and does not wait for one that needs more', () => {
    const key = fullKey({ maxRequests: 3 });
    key.settleAt(1000);
    key.check('a', BATCH);
    expect(key.wait('large', BATCH, { hits: 3 })).toBe('waiting');
    expect(key.peek(INTERACTIVE)).toMatchObject({ outcome: 'approved' });
    expect(key.peek(BATCH)).toMatchObject({ outcome: 'denied', turnMillis: 1000 });
    expect(key.check('x', BATCH)).toBe('denied');
    expect(key.check('y', INTERACTIVE)).toBe('approved');
    expect(key.wait('z', INTERACTIVE)).toBe('approved');
    expect(key.wait('full', INTERACTIVE)).toBe('waiting');
    expect(key.settleAt(2000)).toEqual(['full']);
    expect(key.settleAt(3000)).toEqual(['large']);
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
  });

  describe('an examination', () => {
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
