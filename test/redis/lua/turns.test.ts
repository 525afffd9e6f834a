import { once } from 'node:events';
import { readFileSync } from 'node:fs';

import { jest } from '@jest/globals';
import fc from 'fast-check';

import type { QueueList } from '../../../src/limiter/queue-order.js';
import { extent } from '../../support/extent.js';
import { useScriptHarness } from '../../support/script-harness.js';
import { TurnsAccount } from '../../support/turns-account.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
jest.setTimeout(600_000);
const key = useScriptHarness(redis);

const WINDOW = 1000;
const MAXIMUM = 4;
const LIMITS = { windowMillis: WINDOW, maxRequests: MAXIMUM, maxRequestsInQueue: 1000 };

const lanes: readonly QueueList[] = [
  { kind: 'lane', name: 'interactive', headStartMillis: 3000 },
  { kind: 'lane', name: 'normal', headStartMillis: 1000 },
  { kind: 'lane', name: 'batch', headStartMillis: 0 },
];
const groups: readonly QueueList[] = [
  { kind: 'group', name: 'gold', weight: 3, maxRequests: undefined },
  { kind: 'group', name: 'a', weight: 1, maxRequests: undefined },
  { kind: 'group', name: 'b', weight: 1, maxRequests: undefined },
  { kind: 'group', name: '', weight: 1, maxRequests: undefined },
];

interface Step {
  readonly kind: 'wait' | 'settle' | 'withdraw' | 'ask';
  readonly list: number;
  readonly hits: number;
  readonly afterMillis: number;
  readonly which: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('wait', 'wait', 'wait', 'wait', 'settle', 'withdraw', 'ask'),
  list: fc.nat({ max: 3 }),
  hits: fc.constantFrom(1, 1, 1, 2, 4),
  afterMillis: fc.constantFrom(0, 0, 1, 40, 300, 1000, 2600),
  which: fc.nat({ max: 30 }),
});

/** Listens to wakes, which name all who get turns. */
async function wakesOf(channel: string) {
  const subscriber = redis.client.duplicate();
  const granted: string[] = [];
  subscriber.on('message', (_: string, message: string) => {
    granted.push(...(JSON.parse(message) as { granted: string[] }).granted);
  });
  await subscriber.subscribe(channel);
  return {
    /** Those named since this was asked last. */
    granted: async () => {
      // Its answer comes after all messages before it.
      await subscriber.ping();
      return granted.splice(0);
    },
    end: async () => {
      const ended = once(subscriber, 'end');
      subscriber.disconnect();
      await ended;
    },
  };
}

/** Makes the steps, and settles until nobody waits. @returns the promises that were broken */
async function violationsAfter(
  steps: readonly Step[],
  lists: readonly QueueList[],
  replacements?: Readonly<Record<string, string>>,
): Promise<string[]> {
  await key.begin();
  const account = new TurnsAccount();
  // Nobody seems dead.
  const options = { limits: LIMITS, leaseMillis: 1_000_000, ...(replacements && { replacements }) };
  const replica = key.replica('r1', options);
  let now = 0;
  const wakes = await wakesOf(key.names.wakeChannel);
  /** Accounts for the turns of the last call, after which the next one does not fit. */
  const hear = async (): Promise<void> => {
    account.granted(await wakes.granted());
    const free = MAXIMUM - ((await replica.inspect())?.used ?? 0);
    const { next } = account;
    if (next.length > 0 && next.every(({ hits }) => hits <= free)) {
      account.violations.push(`${free} hits are left, and the next one fits`);
    }
  };
  const settle = async (): Promise<void> => {
    await replica.settle();
    await hear();
  };
  for (const [i, { kind, list: index, hits, afterMillis, which }] of steps.entries()) {
    await key.setTime((now += afterMillis));
    const list = lists[index % lists.length]!;
    if (kind === 'settle') {
      await settle();
    } else if (kind === 'withdraw') {
      const left = account.waiting[which % Math.max(1, account.waiting.length)];
      if (left) {
        account.left(left.id);
        await replica.withdraw([left.id]);
        await hear();
      }
    } else {
      const id = `${i}`;
      // What is due before the check, as another call would serve it.
      await settle();
      const [verdict] = await replica.checkBatch([
        { requestId: id, canWait: kind === 'wait', hits, list },
      ]);
      if (typeof verdict === 'number') account.joined({ id, list, hits, arrival: now });
      else if (verdict === 'approved') {
        account.joined({ id, list, hits, arrival: now });
        account.granted([id]);
      }
      await hear();
    }
  }
  for (let i = 0; account.waiting.length > 0 && i <= 3 * steps.length; i += 1) {
    await key.setTime((now += WINDOW));
    await settle();
  }
  await wakes.end();
  if (account.waiting.length > 0) account.violations.push('some wait for ever');
  return account.violations;
}

const anySteps = fc.array(step, { maxLength: 40, size: 'max' });
/** While somebody waits all the time, so that small errors add up. */
const busyStep: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('wait', 'wait', 'wait', 'wait', 'wait', 'wait', 'settle', 'withdraw'),
  list: fc.nat({ max: 3 }),
  hits: fc.constant(1),
  afterMillis: fc.constantFrom(0, 50, 100, 200, 400),
  which: fc.nat({ max: 30 }),
});
const busySteps = fc.array(busyStep, { minLength: 80, maxLength: 120, size: 'max' });

test.each([
  ['lanes', lanes],
  ['groups', groups],
])('turns of %s are as promised', async (_, lists) => {
  await fc.assert(
    fc.asyncProperty(fc.oneof({ weight: 4, arbitrary: anySteps }, busySteps), async (steps) => {
      expect(await violationsAfter(steps, lists)).toEqual([]);
    }),
    { numRuns: extent(20, 40) },
  );
});

const LUA = new URL('../../../lua/', import.meta.url);

/** A fragment with one change. */
function changed(fragment: string, from: string, to: string): Record<string, string> {
  const text = readFileSync(new URL(`${fragment}.lua`, LUA), 'utf8');
  if (!text.includes(from)) throw new Error(`${fragment} has no ${from}`);
  return { [fragment]: text.replace(from, to) };
}

describe('the account finds scripts in which', () => {
  const faults: readonly (readonly [
    what: string,
    lists: readonly QueueList[],
    fragment: string,
    from: string,
    to: string,
  ])[] = [
    ['a lane is never before another', lanes, 'queue/lists', '- head_start * 1000', ''],
    [
      'a lane starves',
      lanes,
      'queue/turn-walk',
      'following.list.parameter)',
      '9 * following.list.parameter)',
    ],
    [
      'a newcomer passes those who are before it',
      lanes,
      'queue/heads',
      'list.key <= place.key',
      'false',
    ],
    [
      'a newcomer waits behind those who are not',
      lanes,
      'queue/heads',
      'list.key <= place.key',
      'true',
    ],
    [
      'a tag is not advanced',
      groups,
      'queue/turn-walk',
      'return list.key + share\n',
      'return list.key\n',
    ],
    [
      'the virtual time goes back',
      groups,
      'queue/turn-walk',
      'self.virtual_time = list.key',
      'self.virtual_time = 0',
    ],
    [
      'a withdrawal advances a tag',
      groups,
      'queue/lists',
      'return share_before == share and tag or math.max(virtual_time, tag - share_before + share)',
      'return tag + share',
    ],
    [
      'a group begins with an old tag',
      groups,
      'queue/lists',
      'or state.virtual_time + share_of(new[1])',
      'or share_of(new[1])',
    ],
    ['weights do not count', groups, 'queue/lists', 'return hits / of_group', 'return hits'],
  ];

  test.each(faults)('%s', async (_, lists, fragment, from, to) => {
    const replacements = changed(fragment, from, to);
    const found = await fc.check(
      fc.asyncProperty(fc.oneof(anySteps, busySteps), async (steps) => {
        return (await violationsAfter(steps, lists, replacements)).length === 0;
      }),
      { numRuns: 100, seed: 3, endOnFailure: true },
    );
    expect(found.failed).toBe(true);
  });
});
