import type { Redis } from 'ioredis';

import { type CheckBatch, VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { keysToExamine, keysToInspect } from '../../../src/redis/scripts/looks-codec.js';
import { keysToRenew } from '../../../src/redis/scripts/several-keys.js';
import type { Scripts } from '../../../src/redis/scripts/scripts.js';
import { keysOf } from '../../../src/redis/scripts/shared-arguments.js';
import { type KeyNames, KeyNaming } from '../../../src/redis/shared/key-names.js';
import { elementsReadByCalls } from '../../support/elements-read.js';
import { asServer, forgetScripts, textsSent } from '../../support/forget-scripts.js';
import { FORM } from '../../support/redis-user.js';
import {
  type Overrides,
  ScriptHarness,
  TEST_LIMITS,
  type TestReplica,
  checkBatchOf,
  useScriptHarness,
  type TestCheck,
} from '../../support/script-harness.js';
import { scriptsOfManyKeys } from '../../support/scripts-of-many-keys.js';
import { writeOptionalFields } from '../../support/stored-state.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

describe('declared keys', () => {
  /** The keys that the controlled clock reads. */
  const CLOCKS = '%R~test-clock-*';
  const clients: Redis[] = [];
  afterEach(() => {
    for (const client of clients.splice(0)) client.disconnect();
  });

  /** A connection of a user with access to these keys and channels, and the controlled clock. */
  async function restricted(rules: readonly string[], channels: readonly string[]): Promise<Redis> {
    const username = uniqueKey();
    await redis.client.call('ACL', [
      'SETUSER',
      username,
      'on',
      '>secret',
      '+@all',
      'resetchannels',
      CLOCKS,
      ...rules,
      ...channels.map((channel) => `&${channel}`),
    ]);
    const client = redis.client.duplicate({ username, password: 'secret' });
    clients.push(client);
    return client;
  }

  describe('a user with access to only the eight keys and the channel', () => {
    let replica: TestReplica;
    let client: Redis;
    beforeEach(async () => {
      client = await restricted(
        [...keysOf(key.names), key.names.took(0), key.names.lapses].map((name) => `%RW~${name}`),
        [key.names.wakeChannel],
      );
      replica = key.replica('r1', { client });
    });

    test('has no other access', async () => {
      await expect(client.get(uniqueKey())).rejects.toThrow(/NOPERM/);
      await expect(client.get(key.names.leader)).rejects.toThrow(/NOPERM/);
      await expect(client.publish(`${key.names.wakeChannel}2`, '')).rejects.toThrow(/NOPERM/);
      await redis.client.call('ACL', 'LOG', 'RESET');
    });

    test('can run all scripts', async () => {
      // Approves, denies, queues, finds the queue full, purges.
      await replica.checkOrWait(['a', 'b', 'c', 'd', 'e', 'f']);
      await replica.check(['g'], { maxRequests: 3 });
      expect(await replica.renew(1, { wakeNumber: 1 })).toBe(true);
      // Holds the key, since no replica called for so long, and ends the hold.
      await key.setTime(5000);
      await key.replica('r2', { client }).settle();
      await key.setTime(5500);
      await key.replica('r2', { client }).checkOrWait(['h', 'i', 'j', 'k', 'l', 'm', 'n']);
      // Serves by release and by withdrawal, and withdraws.
      const [first] = (await key.stored()).requests;
      expect(await replica.release(first!)).toBe(true);
      expect(await replica.release('unknown')).toBe(false);
      await key.replica('r2', { client }).withdraw(['l', 'h']);
      await replica.inspect();
      await replica.peek();
      await replica.status('g');
      // Ends a window, serves the queue, puts a lost waiter back.
      await key.setTime(6000);
      await replica.settle();
      await replica.settle({ lost: 1 });
      // Forgets an idle key, and the rest of a key whose state was lost.
      await key.setTime(60_000);
      await replica.inspect();
      await replica.peek();
      await replica.status('g');
      await key.replica('r3', { client }).release('unknown');
      // Finds after a hold that all replicas are dead, and removes the key when it is idle again.
      await key.setTime(61_000);
      expect(await replica.settle()).toMatchObject({ waiting: 0 });
      await key.setTime(70_000);
      expect(await replica.settle()).toMatchObject({ millisToRoom: undefined });
      await replica.check(['x']);
      await redis.client.del(key.names.state);
      await replica.release('x');
      await replica.withdraw(['x']);
      expect(await replica.settle({ y: 1 })).toMatchObject({ waiting: 1 });
      await key.setTime(71_000);
      expect(await replica.settle()).toMatchObject({ granted: ['y'] });
    });
  });

  test('renew needs the leases and the state', async () => {
    await key.replica('r1').checkOrWait(['a', 'b', 'c']);
    const names = keysToRenew({ names: key.names, places: 1, wakeNumber: 0 });
    expect(names).toHaveLength(2);
    const client = await restricted(
      names.map((name) => `%RW~${name}`),
      [],
    );
    expect(await key.replica('r1', { client }).renew(1)).toBe(true);
  });

  test.each([
    ['inspect', 'three', keysToInspect],
    ['examine', 'four', keysToExamine],
  ] as const)('%s needs only %s of the keys', async (look, _count, keysTo) => {
    await key.replica('r1').checkOrWait(['a', 'b', 'c']);
    // Redis also requires write access to the keys of an EVAL.
    const client = await restricted(
      keysTo(key.names).map((name) => `%RW~${name}`),
      [],
    );
    const replica = key.replica('r1', { client });
    for (const now of [0, 1000, 5000, 60_000]) {
      await key.setTime(now);
      await replica[look]();
    }
    await key.setTime(500);
    expect(await replica[look]()).toMatchObject({ used: 2, waiting: 1 });
  });
});

describe('names under a prefix', () => {
  const LIMITS = { ...TEST_LIMITS, windowMillis: 600_000, maxRequests: 1 };

  async function scan(pattern: string): Promise<string[]> {
    const names = new Set<string>();
    for await (const some of redis.client.scanStream({ match: pattern })) {
      for (const name of some as string[]) names.add(name);
    }
    return [...names];
  }

  test.each([
    ['a*b', 'axb'],
    ['a?b', 'axb'],
    ['[a-z]', 'k'],
    ['[^a]', 'k'],
    ['back\\slash', 'backslash'],
    ['\\*', '*'],
  ])(
    'SCAN finds the state of every key under the prefix %j, and neither their other names nor %j',
    async (awkward, lookalike) => {
      const unique = uniqueKey();
      const naming = new KeyNaming(unique + awkward);
      const scripts = scriptsOfManyKeys(redis.client, () => LIMITS, {
        leaseMillis: 600_000,
        wakeArgument: naming.wakeArgument({ isCluster: false }),
      });
      const keys = ['%', '%7B', '*', ':queue', 'a', 'a/b c', '{', '}x', '🚰'];
      for (const key of keys) {
        // One check is approved and one waits, so that each key has all its names.
        const checks = ['a', 'b'].map((requestId) => ({ requestId, canWait: true }));
        await scripts.check([checkBatchOf(naming.namesOf(key), checks)]);
      }
      const taken = `${unique}${lookalike}{k}`;
      await redis.client.set(taken, '');
      // Without escapes, the prefix would be a pattern that matches other names.
      expect(await scan(`${unique}${awkward}{*}`)).toContain(taken);

      const found = await scan(naming.statePattern);
      expect(found.map((name) => naming.keyOf(name)).sort()).toEqual(keys.sort());
    },
  );
});

describe('calls with many keys', () => {
  const LIMITS = { windowMillis: 3_600_000, maxRequests: 10_000, maxRequestsInQueue: 1000 };
  const { approved, denied } = VERDICT;

  /** lua/lib/reads.lua: a call that has read this many elements leaves the other keys to the next call. */
  const MOST_READ = 1000;
  const HOLDS = 300;
  const FIRST_HOLD_MILLIS = 5;

  let prefix: string;
  let naming: KeyNaming;
  let scripts: Scripts;
  beforeEach(async () => {
    prefix = `${uniqueKey()}:`;
    naming = new KeyNaming(prefix);
    scripts = scriptsOfManyKeys(redis.client, () => LIMITS, { leaseMillis: 600_000 });
    // A function that is missing would be called twice.
    const names = naming.namesOf('unused');
    await Promise.all([scripts.inspect([names]), scripts.withdraw([{ names, claims: ['x'] }])]);
  });

  function batch(
    names: KeyNames,
    requestIds: readonly string[],
    terms: Partial<TestCheck> = {},
    overrides: Overrides = {},
  ): CheckBatch {
    const checks = requestIds.map((requestId) => ({ requestId, canWait: false, ...terms }));
    return checkBatchOf(names, checks, { overrides });
  }

  const ids = (count: number): string[] => Array.from({ length: count }, () => uniqueKey());

  async function decide(...batches: CheckBatch[]): Promise<(readonly number[])[]> {
    const replies = await scripts.check(batches);
    return replies.map((reply) => {
      if (reply instanceof Error) throw reply;
      return reply.verdicts;
    });
  }

  /** Keys whose holds the next call reads whole: one hold has lapsed, and somebody has removed another. */
  async function keysToRead(count: number): Promise<KeyNames[]> {
    const keys = Array.from({ length: count }, (_, i) => naming.namesOf(`k${i}`));
    for (const names of keys) {
      await decide(batch(names, ids(HOLDS - 1), { holdMillis: 600_000 }));
      await decide(batch(names, ['first'], { holdMillis: FIRST_HOLD_MILLIS }));
      const [last = ''] = await redis.client.zrange(names.lapses, '-1', '-1');
      await redis.client.zrem(names.lapses, last);
    }
    const at = Date.now() + FIRST_HOLD_MILLIS + 5;
    await until(() => Date.now() > at);
    return keys;
  }

  /** Keys whose next call serves the waiters. */
  async function keysToServe(count: number, waiters: number): Promise<KeyNames[]> {
    const keys = Array.from({ length: count }, (_, i) => naming.namesOf(`k${i}`));
    for (const names of keys) {
      await decide(batch(names, ['x'], {}, { maxRequests: 1 }));
      await decide(batch(names, ids(waiters), { canWait: true }));
      // As if the rules' maximum were in force again.
      await redis.client.hset(names.state, 'limits', '2 3600000:10000:1000');
      await writeOptionalFields(redis.client, names.state, { serving: 1 });
    }
    return keys;
  }

  test('a page of keys is inspected by calls that each read a bounded number of holds', async () => {
    const keys = await keysToRead(4);
    const work = async (): Promise<void> => {
      const replies = await scripts.inspect(keys);
      expect(replies).toMatchObject(keys.map(() => ({ held: HOLDS - 2 })));
    };
    const calls = await elementsReadByCalls(redis.client, prefix, work);
    // What is due, the lapses and the records, of two keys.
    expect(calls).toEqual([2 + 4 * HOLDS, 2 + 4 * HOLDS]);
  });

  test.each([
    [
      'checked',
      async (keys: readonly KeyNames[]): Promise<unknown> =>
        decide(...keys.map((names) => batch(names, ['a']))),
      [approved],
    ],
    [
      'withdrawn from',
      (keys: readonly KeyNames[]): Promise<unknown> =>
        scripts.withdraw(keys.map((names) => ({ names, claims: ['unknown'] }))),
      0,
    ],
  ])('keys are %s by calls that each read a bounded number of holds', async (_how, call, reply) => {
    const keys = await keysToRead(4);
    const work = async (): Promise<void> => {
      expect(await call(keys)).toEqual(keys.map(() => reply));
    };
    const calls = await elementsReadByCalls(redis.client, prefix, work);
    // The first hold is gone when the reads are counted.
    expect(calls).toEqual([2 + 4 * (HOLDS - 2), 2 + 4 * (HOLDS - 2)]);
  });

  test('keys with waiters are checked by calls that each serve a bounded number', async () => {
    const keys = await keysToServe(4, 500);
    const work = (): Promise<unknown> => decide(...keys.map((names) => batch(names, ['a'])));
    expect(await elementsReadByCalls(redis.client, prefix, work)).toHaveLength(2);
    for (const names of keys) expect(await redis.client.hlen(names.records)).toBe(0);
  });

  test('the checks of a key that is left to the next call stay in order', async () => {
    const light = naming.namesOf('light');
    await decide(batch(light, ['x']));
    const heavy = await keysToRead(2);
    const verdicts = await decide(
      ...heavy.map((names) => batch(names, ['a'])),
      batch(light, ['b'], {}, { maxRequests: 2 }),
      batch(light, ['c']),
    );
    expect(verdicts).toEqual([[approved], [approved], [approved], [denied]]);
  });

  test('the checks of a new key that is left to the next call stay in order', async () => {
    const [lost] = await keysToServe(1, 1000);
    await redis.client.del(lost!.state, lost!.replicas);
    const fresh = naming.namesOf('fresh');
    const work = async (): Promise<void> => {
      const verdicts = await decide(
        batch(lost!, ['a']),
        batch(fresh, ['b'], {}, { maxRequests: 1 }),
        batch(fresh, ['c']),
      );
      expect(verdicts.slice(1)).toEqual([[approved], [denied]]);
    };
    const calls = await elementsReadByCalls(redis.client, prefix, work);
    expect(calls).toHaveLength(2);
    expect(calls[0]).toBeGreaterThanOrEqual(MOST_READ);
  });

  test('a key that fails does not keep the others from their next call', async () => {
    const keys = await keysToRead(3);
    const wrong = naming.namesOf('wrong');
    await redis.client.set(wrong.state, 'a text', 'EX', 60);
    const replies = await scripts.inspect([wrong, ...keys]);
    expect(replies).toEqual([
      expect.any(Error),
      ...keys.map(() => expect.objectContaining({ held: HOLDS - 2 }) as unknown),
    ]);
  });
});

describe('the cache of scripts', () => {
  test('a Redis that forgets its scripts between any two calls is not noticed', async () => {
    const key = await ScriptHarness.create(redis.client);
    const replica = key.replica('r1');
    const forget = (): Promise<void> => forgetScripts(asServer(redis.client));
    for (let round = 0; round < 2; round += 1) {
      const ids = ['a', 'b', 'c', 'd', 'e'].map((id) => `${id}${round}`);
      await key.setTime(round * 10_000);
      await forget();
      expect(await replica.checkOrWait(ids)).toMatchObject(['approved', 'approved', {}, {}, {}]);
      await forget();
      expect(await replica.release(ids[0]!)).toBe(true);
      await forget();
      await replica.withdraw([ids[3]!]);
      await forget();
      expect(await replica.inspect()).toMatchObject({ used: 2, waiting: 1 });
      await key.setTime(round * 10_000 + 1000);
      await forget();
      expect((await replica.settle()).granted).toEqual([ids[4]]);
    }
  });

  test('Redis gets the text of a script once', async () => {
    const key = await ScriptHarness.create(redis.client);
    const replica = key.replica('r1');
    await forgetScripts(asServer(redis.client));
    await redis.client.config('RESETSTAT');
    for (const id of ['a', 'b', 'c']) await replica.check([id]);
    // The first run fails, since its script is not known. A function runs again, while EVAL runs what it brings.
    expect(await textsSent(asServer(redis.client))).toEqual({
      texts: 1,
      runs: FORM === 'function' ? 4 : 3,
    });
  });
});
