import fc from 'fast-check';

import type { QueueList } from '../../../../src/limiter/queue-order.js';
import { extent } from '../../../support/extent.js';
import { group, InstanceInMemory, lane } from '../../../support/instance-in-memory.js';
import { TurnsAccount } from '../../../support/turns-account.js';

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
