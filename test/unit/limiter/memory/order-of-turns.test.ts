import fc from 'fast-check';

import type { QueueList } from '../../../../src/limiter/queue-order.js';
import { extent } from '../../../support/extent.js';
import { group, InstanceInMemory, lane } from '../../../support/instance-in-memory.js';

// An account of who waits and who is approved, which knows nothing of how the limiter finds the next one.

const LANES = [lane('first', 700), lane('second', 250), lane('last')];
const GROUPS = [group('a'), group('b', 2), group('c', 3), group('d', 10)];
const WINDOW_MILLIS = 100;

interface Request {
  readonly name: string;
  readonly list: QueueList;
  readonly hits: number;
  /** In milliseconds. */
  readonly arrival: number;
  readonly number: number;
}

type Step =
  | { readonly kind: 'check'; readonly list: number; readonly hits: number }
  /** `which` counts from the one that waits for longest, or back from the latest approval. */
  | { readonly kind: 'leave' | 'release'; readonly which: number }
  | { readonly kind: 'advance'; readonly millis: number };

interface Judge {
  /** @param waiting those who wait on, in the order of arrival */
  approvedAtOnce(request: Request, waiting: readonly Request[]): void;
  approvedFromQueue(request: Request, waiting: readonly Request[]): void;
  joined(request: Request): void;
  left(request: Request, waiting: readonly Request[]): void;
  /** @param room how many hits are left */
  settled(waiting: readonly Request[], room: number): void;
}

function run(
  lists: readonly QueueList[],
  maxRequests: number,
  steps: readonly Step[],
  judge: Judge,
): void {
  const limits = { windowMillis: WINDOW_MILLIS, maxRequests, maxRequestsInQueue: 1000 };
  const key = new InstanceInMemory(limits);
  const waiting = new Map<string, Request>();
  const approved: Request[] = [];
  let number = 0;
  const noteGranted = (): void => {
    for (const name of key.granted.splice(0)) {
      const request = waiting.get(name)!;
      waiting.delete(name);
      approved.push(request);
      judge.approvedFromQueue(request, [...waiting.values()]);
    }
  };
  const check = (step: Step & { readonly kind: 'check' }): void => {
    number += 1;
    const name = String(number);
    const list = lists[step.list % lists.length]!;
    const hits = Math.min(step.hits, maxRequests);
    const request = { name, list, hits, arrival: key.now, number };
    const decision = key.wait(name, list, { hits });
    noteGranted();
    if (decision === 'approved') {
      approved.push(request);
      judge.approvedAtOnce(request, [...waiting.values()]);
    } else {
      waiting.set(name, request);
      judge.joined(request);
    }
  };
  const leave = (which: number): void => {
    const request = [...waiting.values()].at(which);
    if (!request) return;
    waiting.delete(request.name);
    judge.left(request, [...waiting.values()]);
    key.withdraw(request.name);
    noteGranted();
  };
  const settle = (): void => {
    key.instance.settle(key.now);
    noteGranted();
    judge.settled([...waiting.values()], maxRequests - key.used[0]!);
  };
  for (const step of steps) {
    if (step.kind === 'check') check(step);
    else if (step.kind === 'leave') leave(step.which);
    else if (step.kind === 'advance') key.now += step.millis;
    else key.release(approved.at(-1 - step.which)?.name ?? '');
    settle();
  }
  while (waiting.size > 0) {
    key.now += WINDOW_MILLIS;
    settle();
  }
}

/** Asserts what holds in every order: of its list, nobody has waited for longer than one that is approved. */
function expectInOrder(request: Request, waiting: readonly Request[]): void {
  const before = waiting.filter(
    ({ list, number }) => list === request.list && number < request.number,
  );
  expect(before).toEqual([]);
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

describe('of lanes', () => {
  const headStart = ({ list }: Request): number =>
    list.kind === 'lane' ? list.headStartMillis : 0;
  const orderKey = (request: Request): number => request.arrival - headStart(request);

  /** Nobody is overtaken by somebody who came later than the difference of the head starts. */
  const expectNotTooEarly = (request: Request, waiting: readonly Request[]): void => {
    expectInOrder(request, waiting);
    const overtaken = waiting.filter(
      (other) => request.arrival - other.arrival > headStart(request) - headStart(other),
    );
    expect(overtaken).toEqual([]);
  };

  test('nobody is overtaken by somebody who came later than the difference of the head starts', () => {
    let served = 0;
    fc.assert(
      fc.property(stepsOf('leave', 'release'), maximum, (steps, max) => {
        run(LANES, max, steps, {
          joined: () => undefined,
          left: () => undefined,
          approvedFromQueue: (request, waiting) => {
            served += 1;
            expectNotTooEarly(request, waiting);
          },
          approvedAtOnce: (request, waiting) => {
            expectNotTooEarly(request, waiting);
            expect(waiting.map(({ list }) => list)).not.toContain(request.list);
          },
          settled: (waiting, room) => {
            if (waiting.length === 0) return;
            // Nothing is left unused while the head fits.
            const first = Math.min(...waiting.map(orderKey));
            const heads = waiting.filter((request) => orderKey(request) === first);
            expect(Math.max(...heads.map((head) => head.hits))).toBeGreaterThan(room);
          },
        });
      }),
      { numRuns },
    );
    expect(served).toBeGreaterThan(numRuns);
  });
});

describe('of groups', () => {
  const weightOf = (list: QueueList): number => (list.kind === 'group' ? list.weight : 1);
  const shareOf = ({ hits: taken, list }: Request): number => taken / weightOf(list);

  /** What two groups have got since both wait, by weight. */
  interface Pair {
    /** What the first has got less what the second has. */
    difference: number;
    /** The least difference since a head of the second left, and the greatest since a head of the first did. */
    least: number;
    greatest: number;
    readonly largest: Map<QueueList, number>;
  }

  /** Judges each two groups while both wait. A group may get less because a head of it leaves, but never more. */
  class Pairs {
    readonly #pairs = new Map<string, Pair>();
    #waiting: Request[] = [];
    served = 0;

    joined(request: Request): void {
      this.#waiting.push(request);
      for (const [one, other] of pairsOf(GROUPS)) {
        if (request.list !== one && request.list !== other) continue;
        const name = nameOf(one, other);
        const known = this.#pairs.get(name);
        if (known) {
          note(known, request);
          continue;
        }
        const ofBoth = this.#waiting.filter(({ list }) => list === one || list === other);
        if (new Set(ofBoth.map(({ list }) => list)).size < 2) continue;
        const pair = { difference: 0, least: 0, greatest: 0, largest: new Map() };
        for (const each of ofBoth) note(pair, each);
        this.#pairs.set(name, pair);
      }
    }

    gone(request: Request, isServed: boolean): void {
      this.#waiting = this.#waiting.filter((waiter) => waiter !== request);
      const waits = new Set(this.#waiting.map(({ list }) => list));
      const isHead = !this.#waiting.some(
        ({ list, number }) => list === request.list && number < request.number,
      );
      for (const [one, other] of pairsOf(GROUPS)) {
        const pair = this.#pairs.get(nameOf(one, other));
        if (!pair || (request.list !== one && request.list !== other)) continue;
        const isOfFirst = request.list === one;
        if (isServed) this.#served(pair, isOfFirst ? shareOf(request) : -shareOf(request));
        else if (isHead && isOfFirst) pair.greatest = pair.difference;
        else if (isHead) pair.least = pair.difference;
        if (!waits.has(one) || !waits.has(other)) this.#pairs.delete(nameOf(one, other));
      }
    }

    #served(pair: Pair, share: number): void {
      pair.difference += share;
      pair.least = Math.min(pair.least, pair.difference);
      pair.greatest = Math.max(pair.greatest, pair.difference);
      this.served += 1;
      const gained = Math.max(pair.difference - pair.least, pair.greatest - pair.difference);
      const bound = [...pair.largest.values()].reduce((sum, each) => sum + each, 0);
      expect(gained).toBeLessThanOrEqual(bound + 1e-9);
    }
  }

  function note({ largest }: Pair, request: Request): void {
    largest.set(request.list, Math.max(largest.get(request.list) ?? 0, shareOf(request)));
  }

  const nameOf = (one: QueueList, other: QueueList): string => `${one.name} ${other.name}`;

  function pairsOf(lists: readonly QueueList[]): [QueueList, QueueList][] {
    return lists.flatMap((one, i) =>
      lists.slice(i + 1).map((other): [QueueList, QueueList] => [one, other]),
    );
  }

  test.each([
    ['while nobody leaves', stepsOf('release')],
    ['while some leave', stepsOf('leave', 'release')],
  ])(
    'none gets more by weight than another that waits, up to the largest request of each, %s',
    (_, steps) => {
      let served = 0;
      fc.assert(
        fc.property(steps, maximum, (drawn, max) => {
          const pairs = new Pairs();
          run(GROUPS, max, drawn, {
            joined: (request) => pairs.joined(request),
            left: (request) => pairs.gone(request, false),
            approvedFromQueue: (request, waiting) => {
              expectInOrder(request, waiting);
              pairs.gone(request, true);
            },
            approvedAtOnce: (_request, waiting) => {
              expect(waiting).toEqual([]);
            },
            settled: (waiting, room) => {
              if (waiting.length === 0) return;
              // Nothing is left unused while all heads fit. So a group alone gets everything.
              const heads = GROUPS.map((each) => waiting.find(({ list }) => list === each));
              const needed = heads.map((head) => head?.hits ?? 0);
              expect(Math.max(...needed)).toBeGreaterThan(room);
            },
          });
          served += pairs.served;
        }),
        { numRuns },
      );
      expect(served).toBeGreaterThan(numRuns);
    },
  );

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
});
