import fc from 'fast-check';

import { type Algorithm, FIXED_WINDOW } from '../../../src/limiter/limits.js';
import { type CheckBatchReply, VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { DeclaredLimits } from '../../support/limits.js';
import { OPERATION } from '../../support/redis-user.js';
import { checkBatchOf, useScriptHarness } from '../../support/script-harness.js';
import { startOfControlledTime } from '../../support/redis-time.js';
import { extent } from '../../support/extent.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

/** Decides nothing, so that every check is decided like one that is not plain. */
const NOTHING_IS_PLAIN = {
  'lib/plain-checks': 'return { decide = function() end }',
  'lib/plain-checks-in-period': 'return { decide = function() end }',
};

const redis = useRedis();
const key = useScriptHarness(redis);
/** Of both histories: turns of a lease begin where that divides the time. */
const START = startOfControlledTime();

/** What happens to a key at a time, and then how many checks come for it. */
const step = fc.record({
  /** A clock can go back. */
  elapsed: fc.oneof(
    fc.constantFrom(0, 1, 999, 1000, 1001, 3999, 4000, -1, -1001),
    fc.integer({ min: 0, max: 6000 }),
    // Within a step of a sliding window, a few steps, and within a millisecond.
    fc.constantFrom(99, 100, 101, 334, 500, 700, 0.001, 0.999, -0.001),
  ),
  checks: fc.integer({ min: 1, max: 5 }),
  assumption: fc.constantFrom('inWindow', 'newWindow', 'unknown'),
  releases: fc.boolean(),
  /** Of a check that comes before the others, and that is not plain. */
  hits: fc.constantFrom(undefined, undefined, 2),
  /** Whether the first check has the id of the first check of the step before. */
  repeatsId: fc.boolean(),
  loses: fc.oneof(
    { weight: 8, arbitrary: fc.constant('nothing' as const) },
    { weight: 1, arbitrary: fc.constantFrom('requests' as const, 'state' as const) },
  ),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const CHECK: Step = {
  elapsed: 0,
  checks: 1,
  assumption: 'unknown',
  releases: false,
  hits: undefined,
  repeatsId: false,
  loses: 'nothing',
};

interface Settings {
  readonly algorithm: Algorithm;
  readonly maxRequests: number;
  readonly maxIdsPerKey: number;
  readonly leaseMillis: number;
}

const SETTINGS = {
  maxRequests: fc.constantFrom(0, 1, 3, 7),
  maxIdsPerKey: fc.constantFrom(2, 6, 1_000_000),
  /** With the longer one, three windows are shorter than a lease. */
  leaseMillis: fc.constantFrom(500, 5000),
};

/** What Redis has under each name of the key, and when it removes that. */
async function everythingStored(): Promise<Record<string, unknown>> {
  const { client, names } = key;
  const { state, requests, hits, pastRequests } = names;
  const hashes = [state, hits, ...names.recentIds(undefined)];
  const sets = [requests, ...pastRequests];
  const stored = await Promise.all([
    ...hashes.map(async (name) => [name, await client.hgetall(name)] as const),
    ...sets.map(async (name) => [name, (await client.smembers(name)).sort()] as const),
  ]);
  const expiry = await Promise.all(stored.map(([name]) => client.pexpiretime(name)));
  return Object.fromEntries(
    stored.map(([name, value], i) => [name.slice(state.length), [value, expiry[i]]]),
  );
}

/** What each step replied, and left behind. */
async function run(
  steps: readonly Step[],
  { maxRequests, algorithm, ...rest }: Settings,
  replacements: Readonly<Record<string, string>>,
): Promise<unknown[]> {
  await key.begin(START);
  const limits = { windowMillis: 1000, maxRequests, algorithm };
  const { scripts } = key.replica('r1', { limits, ...rest, replacements });
  // All checks have ids of their own. But only limits without fixed windows look for each id before they take it.
  const mayRepeat = algorithm !== FIXED_WINDOW;
  const seen: unknown[] = [];
  let now = 0;
  for (const [i, step] of steps.entries()) {
    now = Math.max(0, now + step.elapsed);
    await key.setTime(now);
    if (step.loses !== 'nothing') await redis.client.del(key.names[step.loses]);
    if (step.releases) await scripts.release(key.names, `${i - 1}-0`);
    const batch = Array.from({ length: step.checks }, (_, n) => ({
      requestId: mayRepeat && step.repeatsId && n === 0 ? `${i - 1}-0` : `${i}-${n}`,
      canWait: false,
    }));
    if (step.hits) {
      const check = { requestId: `${i}-hits`, canWait: false, hits: step.hits };
      await scripts.check([checkBatchOf(key.names, [check])]);
    }
    const [reply] = await scripts.check([
      checkBatchOf(key.names, batch, { assumption: step.assumption }),
    ]);
    const { millisToRoom, quota, verdicts } = reply as CheckBatchReply;
    seen.push({ reply: [millisToRoom, quota, ...verdicts], stored: await everythingStored() });
  }
  return seen;
}

test.each<[limit: string, algorithms: readonly Algorithm[]]>([
  ['a fixed window', [FIXED_WINDOW]],
  [
    'a sliding window',
    [
      { name: 'sliding_window', steps: 3 },
      { name: 'sliding_window', steps: 10 },
    ],
  ],
  [
    'a token bucket',
    [
      { name: 'token_bucket', burst: 1 },
      { name: 'token_bucket', burst: 5 },
    ],
  ],
])(
  'plain checks of %s are decided, and leave a key, as if none were plain',
  async (_limit, algorithms) => {
    const settings = fc.record({ ...SETTINGS, algorithm: fc.constantFrom(...algorithms) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 10 }),
        settings,
        async (steps, used) => {
          const plainly = await run(steps, used, {});
          expect(plainly).toEqual(await run(steps, used, NOTHING_IS_PLAIN));
        },
      ),
      { numRuns: extent(50, 100) },
    );
    // The limit bounds the histories, and not the time: a busy machine takes four times as long.
  },
);

test('a plain check of a sliding window leaves no ids of a generation that ends inside of a period', async () => {
  const algorithm: Algorithm = { name: 'sliding_window', steps: 10 };
  const used = { algorithm, maxRequests: 7, maxIdsPerKey: 100, leaseMillis: 500 };
  // The ids of the first check are of the steps 0 to 10, and the last one begins the steps 22 to 32.
  const steps = [0, 1000, 1000, 200].map((elapsed) => ({ ...CHECK, elapsed }));
  expect(await run(steps, used, {})).toEqual(await run(steps, used, NOTHING_IS_PLAIN));
});

/** The script call of a second check, and the commands of its script, with their numbers. */
async function commandsOfSecondCheck(limits: Partial<DeclaredLimits>): Promise<string[]> {
  const replica = key.replica('r1', { leaseMillis: 500, limits });
  await replica.check(['a']);
  await redis.client.config('RESETSTAT');
  await replica.check(['b']);
  const stats = await redis.client.info('commandstats');
  return [...stats.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].map(
    ([, name, calls]) => `${name} ${calls}`,
  );
}

test('a plain check of a key in mid-window is one of few commands', async () => {
  const commands = await commandsOfSecondCheck({});
  expect(commands).toEqual(
    expect.arrayContaining([
      'hmget 1',
      'sadd 1',
      'scard 1',
      'hset 1',
      `${OPERATION.toLowerCase()} 1`,
    ]),
  );
  expect(commands.filter((text) => /^(pexpireat|exists|unlink|rename|hlen) /.test(text))).toEqual(
    [],
  );
});

test.each<[limit: string, algorithm: Algorithm]>([
  ['a sliding window', { name: 'sliding_window', steps: 10 }],
  ['a token bucket', { name: 'token_bucket', burst: 2 }],
])('a plain check of %s is one of few commands while its period goes on', async (_, algorithm) => {
  const commands = await commandsOfSecondCheck({ algorithm });
  expect(commands).toEqual(
    expect.arrayContaining(['hmget 2', 'hlen 2', 'hset 2', 'sadd 1', 'scard 1']),
  );
  expect(commands.filter((text) => /^(pexpireat|exists|unlink|rename) /.test(text))).toEqual([]);
});

/** What two keys store of their buckets after plain checks in one call. Of one a lower maximum has cut off a part. */
async function storedAfterCut(replacements: Readonly<Record<string, string>>): Promise<unknown> {
  await key.begin(START);
  const algorithm: Algorithm = { name: 'token_bucket', burst: 10 };
  const other = new KeyNaming('sluice:').namesOf(uniqueKey());
  const [higher, lower] = [10, 2].map((maxRequests) => {
    const limits = { windowMillis: 1000, maxRequests, algorithm };
    return key.replica('r1', { limits, leaseMillis: 500, replacements });
  });
  let calls = 0;
  const check = async (millis: number): Promise<unknown> => {
    await key.setTime(millis);
    calls += 1;
    const checks = [{ requestId: `${calls}`, canWait: false }];
    const keys = [key.names, other];
    const replies = await lower!.scripts.check(keys.map((names) => checkBatchOf(names, checks)));
    const own = await Promise.all(keys.map(({ state }) => key.client.hget(state, 'own')));
    return [replies.map((reply) => (reply as CheckBatchReply).verdicts[0]), own];
  };
  await higher!.checkHits('first', 10);
  await higher!.amend('first', 20);
  await check(0);
  // Begins the second period.
  await check(1490);
  return check(1500);
}

test('plain checks of buckets keep what a lower maximum has cut off one of them', async () => {
  const stored = await storedAfterCut({});
  const [at, begun] = [1500, 0].map((millis) => (START + millis) * 1000);
  expect(stored).toEqual([
    [VERDICT.approved, VERDICT.approved],
    [`2:${at}:1:${begun}:10:4`, expect.stringMatching(/^[^:]+:\d+:1:0$/)],
  ]);
  expect(stored).toEqual(await storedAfterCut(NOTHING_IS_PLAIN));
});
