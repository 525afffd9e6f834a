import { StoreFullError } from '../../../src/limiter/errors.js';
import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import {
  type CheckBatch,
  type CheckBatchReply,
  VERDICT,
  encodeChecks,
} from '../../../src/redis/scripts/check-codec.js';
import { loadScript } from '../../../src/redis/scripts/script-loader.js';
import type { Scripts } from '../../../src/redis/scripts/scripts.js';
import { type KeyNames, KeyNaming } from '../../../src/redis/shared/key-names.js';
import { extent } from '../../support/extent.js';
import { type DeclaredLimits, keyLimits } from '../../support/limits.js';
import fc from '../../support/properties.js';
import { startOfControlledTime } from '../../support/redis-time.js';
import { OPERATION } from '../../support/redis-user.js';
import { SCRIPT_CALLER } from '../../support/script-caller.js';
import {
  type Overrides,
  TEST_KEPT_MILLIS,
  TEST_LEASE_MILLIS,
  type TestCheck,
  type Verdict,
  checkBatchOf,
  useScriptHarness,
} from '../../support/script-harness.js';
import { scriptsOfManyKeys } from '../../support/scripts-of-many-keys.js';
import { writeOptionalFields } from '../../support/stored-state.js';
import { sentAgain } from '../../support/unguarded.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';
import { whileFull } from '../../support/while-full.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);
const key = useScriptHarness(redis);

describe('checks of a key', () => {
  const replica = key.replica('r1');

  /** The fields of the state after the first check at 0, with the given changes. */
  const state = (changed: Record<string, unknown> = {}): Record<string, unknown> => ({
    start: 0,
    window: 1000,
    max: 2,
    queueMax: 3,
    approved: 0,
    denied: 0,
    ticket: 0,
    expires: 4000,
    overridden: [],
    born: 0,
    recoveryUntil: 'no',
    gen: expect.any(Number) as number,
    isUnsorted: false,
    isServing: false,
    served: 'never',
    ...changed,
  });

  /** Fills the window: a and b approved. */
  const fillWindow = (): Promise<Verdict[]> => replica.check(['a', 'b']);

  test('a check makes the key, whose names expire three windows after the last', async () => {
    expect(await replica.check(['a'])).toEqual(['approved']);
    expect(await key.stored()).toEqual({
      withdrawnEntries: 0,
      pastRequests: ['a'],
      state: state({ approved: 1 }),
      requests: ['a'],
      queue: [],
      replicas: {},
      expiry: { state: 11_000, requests: 11_000 },
    });
  });

  test('a check that joins the queue keeps all names for 21 leases', async () => {
    await fillWindow();
    await key.setTime(400);
    expect(await replica.checkOrWait(['c'])).toEqual([400_000]);
    const expiresAt = 400 + TEST_KEPT_MILLIS;
    expect(await key.stored()).toMatchObject({
      state: state({ approved: 2, ticket: 400_000 }),
      queue: [['c@r1', 400_000]],
      replicas: { r1: 400 + TEST_LEASE_MILLIS },
      expiry: {
        state: expiresAt,
        requests: expiresAt,
        queue: expiresAt,
        records: expiresAt,
        replicas: expiresAt,
      },
    });
  });

  test('a check that raises the maximum publishes one wake for the waiters that it serves', async () => {
    await fillWindow();
    await replica.checkOrWait(['c', 'd']);
    await key.setTime(10);
    const wakes = await recordWakes(key.names.wakeChannel);
    await replica.check(['e'], { maxRequests: 5 });
    await replica.check(['f']);
    expect(await wakes.take()).toEqual([
      `{"at":${key.startMillis + 10},"number":1,"millisToRoom":990,"waiting":0,` +
        '"limits":"1000:5*:3","approved":5,"granted":["c","d"]}',
    ]);
  });

  describe('tickets', () => {
    test('strictly increase, whatever the clock does', async () => {
      const times = fc.array(fc.integer({ min: -3000, max: 3000 }), {
        minLength: 2,
        maxLength: 12,
      });
      const limits = { windowMillis: 100_000, maxRequests: 1, maxRequestsInQueue: 100 };
      await fc.assert(
        fc.asyncProperty(times, async (sequence) => {
          await key.begin();
          const waiting = key.replica('r1', { limits });
          await waiting.check(['a']);
          const tickets: Verdict[] = [];
          for (const [i, time] of sequence.entries()) {
            await key.setTime(time);
            tickets.push(...(await waiting.checkOrWait([`first ${i}`, `second ${i}`])));
          }
          expect([...new Set(tickets)].sort((a, b) => Number(a) - Number(b))).toEqual(tickets);
          expect((await key.stored()).queue.map(([waiter]) => waiter)).toEqual(
            sequence.flatMap((_time, i) => [`first ${i}@r1`, `second ${i}@r1`]),
          );
        }),
        { numRuns: extent(10, 30) },
      );
    });

    test('go on from the last one after the queue was empty', async () => {
      await fillWindow();
      await key.setTime(500);
      expect(await replica.checkOrWait(['c'])).toEqual([500_000]);
      await replica.withdraw(['c']);
      await key.setTime(100);
      expect(await replica.checkOrWait(['d'])).toEqual([500_001]);
    });
  });

  describe('a clock that goes back', () => {
    beforeEach(async () => {
      await fillWindow();
      await replica.checkOrWait(['c']);
    });

    test.each([-1, -1001, -50_000])(
      'to %d: the window begins then, as full as it is',
      async (now) => {
        const before = await key.stored();
        await key.setTime(now);
        expect(await replica.check(['d'])).toEqual(['denied']);
        expect(await key.stored()).toMatchObject({
          state: { ...before.state, start: now, denied: 1, expires: now + 4000 },
          requests: before.requests,
          replicas: { r1: now + TEST_LEASE_MILLIS },
        });
        expect((await replica.settle()).millisToRoom).toBe(1000);
        await key.setTime(now + 999);
        expect(await replica.check(['e'])).toEqual(['denied']);
        await key.setTime(now + 1000);
        expect(await replica.check(['e', 'f'])).toEqual(['approved', 'denied']);
        expect((await key.stored()).requests).toEqual(['c', 'e']);
      },
    );

    test('gives no ticket a second time in a key that has been idle', async () => {
      const { queue } = await key.stored();
      await key.setTime(-50_000);
      await replica.check(['d']);
      const now = -50_000 + TEST_LEASE_MILLIS;
      const later = key.replica('r2', { history: { since: -50_000, until: now } });
      await key.setTime(now);
      await later.check(['e', 'f']);
      await later.checkOrWait(['g']);
      const [[, ticket]] = queue as [[string, number]];
      expect((await key.stored()).queue).toEqual([['g@r2', ticket + 1]]);
      await replica.settle({ c: ticket });
      await key.setTime(now + 1000);
      expect((await later.settle()).granted).toEqual(['c', 'g']);
    });

    test('shortens leases within a window after renewals, as the own lease of a replica shows', async () => {
      const dead = key.replica('dead');
      await dead.checkOrWait(['first']);
      await key.setTime(900);
      await dead.renew(1);
      await replica.renew(1);
      await key.setTime(100);
      expect(await replica.renew(1)).toBe(false);
      await replica.settle();
      const leaseEnds = 100 + TEST_LEASE_MILLIS;
      expect((await key.stored()).replicas).toEqual({ r1: leaseEnds, dead: leaseEnds });
    });
  });

  test('a lease is as long as its replica has it, while others have shorter ones', async () => {
    await fillWindow();
    await key.replica('long', { leaseMillis: 60_000 }).checkOrWait(['c']);
    await replica.checkOrWait(['d']);
    expect((await key.stored()).replicas).toEqual({ long: 60_000, r1: TEST_LEASE_MILLIS });
  });
});

describe('checks of several keys in one call', () => {
  const LIMITS = { windowMillis: 3_600_000, maxRequests: 2, maxRequestsInQueue: 3 };
  const { approved, denied, storeFull } = VERDICT;

  let scripts: Scripts;
  let again: Scripts;
  let naming: KeyNaming;
  beforeEach(() => {
    naming = new KeyNaming(`${uniqueKey()}:`);
    scripts = scriptsOfManyKeys(redis.client, () => LIMITS);
    again = scriptsOfManyKeys(redis.client, () => LIMITS, { guard: sentAgain });
  });

  function batch(key: string, ids: readonly string[], overrides: Overrides = {}): CheckBatch {
    const checks = ids.map((requestId) => ({ requestId, canWait: false }));
    return checkBatchOf(naming.namesOf(key), checks, { overrides });
  }

  /** The verdicts or the error of each batch of one call. */
  async function decide(...batches: CheckBatch[]): Promise<(readonly number[] | Error)[]> {
    const replies = await scripts.check(batches);
    return replies.map((reply) => (reply instanceof Error ? reply : reply.verdicts));
  }

  test('names in several slots come as arguments, and are followed by the ids of the checks', async () => {
    const { text } = loadScript('check');
    const batches = [batch('a', ['1', '2']), batch('b', ['3'])];
    const caller = { ...SCRIPT_CALLER, limitsOf: () => keyLimits(LIMITS) };
    const { keys, args } = encodeChecks(caller, batches, {
      isSentAgain: false,
      mayBeFull: false,
      hasSeveralSlots: true,
      time: 0,
    });
    expect(keys).toEqual([]);
    await redis.client.eval(text, 0, ...args);
    expect(await approvedIn(naming.namesOf('a'))).toEqual(['1', '2']);
    expect(await approvedIn(naming.namesOf('b'))).toEqual(['3']);
  });

  test.each([[false], [true]])(
    'names in several slots are looked for before anything is written, with a full memory: %s',
    async (mayBeFull) => {
      const { text } = loadScript('check');
      const caller = { ...SCRIPT_CALLER, limitsOf: () => keyLimits(LIMITS) };
      const looks = async (hasSeveralSlots: boolean): Promise<number> => {
        naming = new KeyNaming(`${uniqueKey()}:`);
        const batches = [batch('a', ['1', '2']), batch('b', ['3'])];
        const circumstances = { isSentAgain: false, mayBeFull, hasSeveralSlots, time: 0 };
        const { keys, args } = encodeChecks(caller, batches, circumstances);
        await redis.client.config('RESETSTAT');
        await redis.client.eval(text, keys.length, ...keys, ...args);
        const stats = await redis.client.info('commandstats');
        return Number(/cmdstat_exists:calls=(\d+)/.exec(stats)?.[1] ?? 0);
      };
      expect((await looks(true)) - (await looks(false))).toBe(2);
    },
  );

  const approvedIn = async ({ requests }: KeyNames): Promise<string[]> =>
    (await redis.client.smembers(requests)).sort();

  test('batches of one key are decided one after the other', async () => {
    const verdicts = await decide(
      batch('k', ['a', 'b', 'c']),
      batch('k', ['d', 'e'], { maxRequests: 3 }),
      batch('l', ['f']),
      batch('k', ['g']),
    );

    expect(verdicts).toEqual([
      [approved, approved, denied],
      [approved, denied],
      [approved],
      [denied],
    ]);
  });

  test.each(['state', 'replicas'] as const)(
    'a batch whose %s has a wrong type fails alone',
    async (name) => {
      const broken = naming.namesOf('broken');
      await redis.client.set(broken[name], 'not ours', 'EX', 60);

      const [before, failure, after] = await decide(
        batch('before', ['a']),
        batch('broken', ['b', 'c', 'd']),
        batch('after', ['e', 'f', 'g']),
      );

      expect([before, after]).toEqual([[approved], [approved, approved, denied]]);
      expect(failure).toMatchObject({ message: expect.stringMatching(/^WRONGTYPE /) as unknown });
      expect(await approvedIn(naming.namesOf('after'))).toEqual(['e', 'f']);
    },
  );

  describe('a full Redis', () => {
    test('fails checks of new keys, and decides them when it has room again', async () => {
      const replies = await whileFull(redis.client, () =>
        scripts.check([batch('k', ['a']), batch('l', ['b'])]),
      );
      const [refusal] = replies;
      expect(replies).toEqual([expect.any(StoreFullError), expect.any(StoreFullError)]);
      expect(refusal).toMatchObject({
        cause: { message: expect.stringMatching(/^OOM /) as unknown },
      });
      expect(await approvedIn(naming.namesOf('k'))).toEqual([]);
      expect(await decide(batch('k', ['a']))).toEqual([[approved]]);
    });

    test('decides checks of existing keys, and makes no new key with them', async () => {
      await decide(batch('k', ['a']), batch('l', ['b']));
      const known = [naming.namesOf('k'), naming.namesOf('l')];
      // Their windows have ended, so a decision begins with a write that takes no memory.
      for (const { state } of known) await redis.client.hincrby(state, 'start', -3_600_000);
      const [k, first, l, second, again] = await whileFull(redis.client, () =>
        scripts.check([
          batch('k', ['c', 'd', 'e']),
          batch('new', ['f']),
          batch('l', ['g']),
          batch('newer', ['h']),
          batch('k', ['i'], { maxRequests: 4 }),
        ]),
      );
      expect([k, l, again]).toMatchObject([
        { verdicts: [approved, approved, denied] },
        { verdicts: [approved] },
        { verdicts: [approved] },
      ]);
      expect([first, second]).toEqual([expect.any(StoreFullError), expect.any(StoreFullError)]);
      expect(await redis.client.exists(naming.namesOf('new').state)).toBe(0);
    });

    describe('that is above its maxmemory by more than a tenth', () => {
      const FAR_ABOVE = 1.2;
      const whileFarAbove = <T>(work: () => Promise<T>): Promise<T> =>
        whileFull(redis.client, work, FAR_ABOVE);

      test('fails checks that it would approve or let wait, and denies the others', async () => {
        await decide(batch('k', ['a']), batch('full', ['b', 'c']));
        const waiting = checkBatchOf(naming.namesOf('full'), [{ requestId: 'w', canWait: true }]);
        const verdicts = await whileFarAbove(() =>
          decide(batch('k', ['d', 'e', 'f']), batch('full', ['g']), waiting, batch('new', ['h'])),
        );
        expect(verdicts).toEqual([
          [storeFull, storeFull, storeFull],
          [denied],
          [storeFull],
          expect.any(StoreFullError),
        ]);
        expect(await approvedIn(naming.namesOf('k'))).toEqual(['a']);
        expect(await redis.client.exists(naming.namesOf('full').queue)).toBe(0);
      });

      test('fails checks with several hits or a hold that fit, and denies those that do not', async () => {
        await decide(batch('k', ['a']));
        const terms = checkBatchOf(naming.namesOf('k'), [
          { requestId: 'b', canWait: false, hits: 2 },
          { requestId: 'c', canWait: false, holdMillis: 1000 },
        ]);
        expect(await whileFarAbove(() => decide(terms))).toEqual([[denied, storeFull]]);
      });

      test('approves again what it has approved before, and releases', async () => {
        await decide(batch('k', ['a', 'b']));
        await whileFarAbove(async () => {
          expect(await again.check([batch('k', ['a'])])).toMatchObject([{ verdicts: [approved] }]);
          expect(await again.ask('release', naming.namesOf('k'), { requestId: 'a' })).toBe(true);
        });
        expect(await approvedIn(naming.namesOf('k'))).toEqual(['b']);
      });

      test.each(['function', 'script'])(
        'approves nothing after it has removed what has ended, by a %s',
        async (form) => {
          const onlyScripts = form === 'script';
          const held = (requestId: string): CheckBatch =>
            checkBatchOf(naming.namesOf('k'), [{ requestId, canWait: false, holdMillis: 60_000 }]);
          await decide(held('a'));
          const { state, lapses } = naming.namesOf('k');
          // The hold and the window have ended.
          const lapsed = { first_lapse: 1000, last_lapse: 1000 };
          await writeOptionalFields(redis.client, state, lapsed);
          await redis.client.zadd(lapses, 1000, 'a');
          await redis.client.hincrby(state, 'start', -3_600_000);
          const [reply] = await whileFarAbove(() =>
            scriptsOfManyKeys(redis.client, () => LIMITS, { onlyScripts }).check([held('b')]),
          );
          expect(reply).toMatchObject({ verdicts: [storeFull] });
          expect(await redis.client.exists(lapses)).toBe(0);
        },
      );
    });
  });
});

describe('plain checks', () => {
  /** Decides nothing, so that every check is decided like one that is not plain. */
  const NOTHING_IS_PLAIN = {
    'lib/plain-checks': `local decide = function() end
return { decide_in_windows = decide, decide_in_period = decide }`,
  };
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
    const { state, requests, pastRequests } = names;
    const hashes = [state, names.took(0), names.took(1)];
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
    const mayRepeat = algorithm !== DEFAULT_ALGORITHM;
    const seen: unknown[] = [];
    let now = 0;
    for (const [i, step] of steps.entries()) {
      now = Math.max(0, now + step.elapsed);
      await key.setTime(now);
      if (step.loses !== 'nothing') await redis.client.del(key.names[step.loses]);
      if (step.releases) await scripts.ask('release', key.names, { requestId: `${i - 1}-0` });
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
    ['a fixed window', [DEFAULT_ALGORITHM]],
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
  ])(
    'a plain check of %s is one of few commands while its period goes on',
    async (_, algorithm) => {
      const commands = await commandsOfSecondCheck({ algorithm });
      expect(commands).toEqual(
        expect.arrayContaining(['hmget 2', 'hlen 2', 'hset 2', 'sadd 1', 'scard 1']),
      );
      expect(commands.filter((text) => /^(pexpireat|exists|unlink|rename) /.test(text))).toEqual(
        [],
      );
    },
  );

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
      const own = await Promise.all(
        keys.map(
          async ({ state }) => JSON.parse((await key.client.hget(state, 'own'))!) as unknown,
        ),
      );
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
      [
        { level: 2, time: at, generation: 1, pace_since: begun, high_max: 10, excess: 4 },
        { level: expect.any(Number) as unknown, time: at, generation: 1 },
      ],
    ]);
    expect(stored).toEqual(await storedAfterCut(NOTHING_IS_PLAIN));
  });
});

describe('checks that are sent again', () => {
  const limits = { maxRequests: 5 };
  const replica = key.replica('r1', { limits });
  const again = key.replica('r1', { limits, guard: sentAgain });

  const KINDS: [kind: string, terms: Partial<TestCheck>][] = [
    ['plain', {}],
    ['with hits', { hits: 3 }],
    ['held', { holdMillis: 2500 }],
  ];

  const check = (requestId: string, terms: Partial<TestCheck> = {}): TestCheck => ({
    requestId,
    canWait: false,
    ...terms,
  });

  const stored = async (): Promise<unknown> => [
    await key.stored(),
    await key.storedHolds(),
    await redis.client.hgetall(key.names.took(0)),
  ];

  describe.each(KINDS)('a check that is sent again, %s,', (_kind, terms) => {
    test.each([0, 1000, 2499])('takes no second approval, %d ms later', async (millis) => {
      await replica.checkBatch([check('a', terms)]);
      await key.setTime(millis);
      await replica.check(['b']);
      const before = await stored();
      expect(await again.checkBatch([check('a', terms)])).toEqual(['approved']);
      expect(await stored()).toEqual(before);
    });

    test.each([0, 1500])('takes nothing after its release, %d ms later', async (millis) => {
      await replica.checkBatch([check('a', terms)]);
      await key.setTime(millis);
      await replica.release('a');
      expect(await again.checkBatch([check('a', terms)])).toEqual(['approved']);
      expect(await key.stored()).toMatchObject({ state: { approved: 0, denied: 0 }, requests: [] });
      expect(await key.storedHolds()).toEqual({});
    });

    test('is decided again if it was denied, and counts no second denial', async () => {
      await replica.check(['b', 'c', 'd', 'e', 'f']);
      await replica.checkBatch([check('a', terms)]);
      expect(await again.checkBatch([check('a', terms)])).toEqual(['denied']);
      expect((await key.stored()).state).toMatchObject({ approved: 5, denied: 1 });
      for (const id of ['b', 'c', 'd']) await replica.release(id);
      expect(await again.checkBatch([check('a', terms)])).toEqual(['approved']);
      expect((await key.stored()).state).toMatchObject({ denied: 1 });
    });

    test('keeps its place in the queue, however long it would wait now', async () => {
      await replica.check(['b', 'c', 'd', 'e', 'f']);
      const waits = { ...terms, canWait: true, maxWaitMillis: 1000 };
      const [ticket] = await replica.checkBatch([check('a', waits)]);
      await key.setTime(10);
      const before = await stored();
      expect(await again.checkBatch([check('a', { ...waits, maxWaitMillis: 5 })])).toEqual([
        ticket,
      ]);
      expect(await stored()).toEqual(before);
    });
  });

  test('a held check that is sent again after its lapse is decided as a new one', async () => {
    await replica.checkHold('a', 500);
    await key.setTime(500);
    expect(await again.checkHold('a', 500)).toBe('approved');
    expect(await key.storedHolds()).toEqual({ a: '1000:500' });
    expect((await key.stored()).state).toMatchObject({ approved: 1, held: 1 });
  });

  describe('checks that are sent again among others', () => {
    const fill = (): Promise<Verdict[]> => replica.check(['a', 'b'], { maxRequests: 2 });

    test('are decided separately from new ones', async () => {
      await fill();
      await replica.checkOrWait(['c']);
      const batch = [check('x'), check('b'), check('c', { canWait: true })];
      expect(await again.checkBatch([...batch, check('d', { canWait: true })])).toEqual([
        'denied',
        'approved',
        1,
        2,
      ]);
      expect((await key.stored()).state).toMatchObject({ approved: 2, denied: 0 });
      expect(await key.queued()).toEqual(['c@r1', 'd@r1']);
    });

    test('never take a second place in a full queue', async () => {
      await fill();
      await replica.checkOrWait(['c', 'd', 'e']);
      expect(await again.checkOrWait(['e', 'f'])).toEqual([3, 'queue full']);
    });
  });
});

describe('hits', () => {
  const replica = key.replica('r1', { limits: { maxRequests: 5 } });

  /** The stored hits of the approvals that have more than one. */
  const storedHits = (): Promise<Record<string, string>> => redis.client.hgetall(key.names.took(0));

  describe('a check with hits', () => {
    test('leaves its id and the number of its hits, which expire together', async () => {
      expect(await replica.checkHits('a', 3)).toEqual('approved');
      expect(await replica.check(['b'])).toEqual(['approved']);
      expect(await replica.checkHits('c', 2)).toEqual('denied');
      expect(await key.stored()).toMatchObject({
        state: { approved: 4, denied: 1 },
        requests: ['a', 'b'],
        expiry: { requests: 11_000, took: 11_000 },
      });
      expect(await storedHits()).toEqual({ a: '3' });
    });

    test('counts once, also if its id is approved again', async () => {
      await replica.checkHits('a', 2);
      await replica.checkHits('a', 2);
      expect(await key.counted()).toEqual({ approved: 2, held: 0 });
    });

    test('leaves a plain key when its window has ended', async () => {
      await replica.checkHits('a', 3);
      expect(await key.optionalFields()).toEqual({ hits: 1 });
      await key.setTime(1000);
      await replica.check(['b']);
      expect(await redis.client.hget(key.names.state, 'extra')).toBe(null);
      expect(await storedHits()).toEqual({});
    });

    test('has the exact number of its hits, up to a billion', async () => {
      const large = key.replica('r1', { limits: { maxRequests: 1_000_000_000 } });
      expect(await large.checkHits('a', 999_999_999)).toBe('approved');
      expect(await large.checkHits('b', 2)).toBe('denied');
      expect(await storedHits()).toEqual({ a: '999999999' });
      expect(await large.release('a')).toBe(true);
      expect(await key.stored()).toMatchObject({ state: { approved: 0 }, requests: [] });
      expect(await storedHits()).toEqual({});
    });

    test.each([
      ['are longer than a lease', 4000],
      ['are shorter than a lease', 100],
    ])(
      'keeps its id but not its hits after its window, if three windows %s',
      async (_w, millis) => {
        const other = key.replica('r1', { limits: { windowMillis: millis, maxRequests: 5 } });
        await other.checkHits('a', 3);
        await key.setTime(millis);
        await other.check(['b']);
        expect(await key.stored()).toMatchObject({
          state: { approved: 1 },
          requests: ['b'],
          pastRequests: expect.arrayContaining(['a']) as unknown,
        });
        expect(await storedHits()).toEqual({});
        await key.pastExpiry();
      },
    );
  });

  describe('a correction', () => {
    const slow = key.replica('r1', { limits: { windowMillis: 4000, maxRequests: 5 } });
    beforeEach(async () => {
      await slow.check(['a', 'b']);
      await slow.checkHits('c', 2);
    });

    test('stores the hits that are not one', async () => {
      for (const [id, hits, stored] of [
        ['a', 2, { a: '2', c: '2' }],
        ['c', 1, { a: '2' }],
        ['a', 1, {}],
      ] as const) {
        expect(await slow.amend(id, hits)).toBe(true);
        expect(await storedHits()).toEqual(stored);
      }
    });

    test('to no hits keeps the names of the approvals, until their window ends', async () => {
      for (const id of ['a', 'b', 'c']) await slow.amend(id, 0);
      expect(await key.stored()).toMatchObject({
        state: { approved: 0 },
        requests: ['a', 'b', 'c'],
        expiry: { requests: 16_000, took: 16_000 },
      });
      await key.setTime(4000);
      await slow.check(['d']);
      expect((await key.stored()).requests).toEqual(['d']);
    });
  });
});
