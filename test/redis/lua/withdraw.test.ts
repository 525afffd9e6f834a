import { type KeyNames, KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { Scripts } from '../../../src/redis/scripts/scripts.js';
import type { DeclaredLimits } from '../../support/limits.js';
import { checkBatchOf, ScriptHarness } from '../../support/script-harness.js';
import { scriptsOfManyKeys } from '../../support/scripts-of-many-keys.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useKeyWithWaiters } from '../../support/use-key-with-waiters.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const { key, r1, r2, wakes } = useKeyWithWaiters(redis);
beforeEach(() => key.setTime(10));

const leased = async (): Promise<string[]> => Object.keys((await key.stored()).replicas).sort();

describe('a waiter', () => {
  test('is withdrawn, and nobody is woken', async () => {
    await r1.withdraw(['c']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2, denied: 0 },
      queue: [
        ['d@r2', 2],
        ['e@r1', 3],
      ],
      replicas: { r1: 5000, r2: 5000 },
    });
    expect(await wakes.take()).toEqual([]);
  });

  test('that is the last of its replica ends its lease, and the last of all removes the queue', async () => {
    await r1.withdraw(['c', 'e']);
    expect(await leased()).toEqual(['r2']);
    await r2.withdraw(['d']);
    expect((await key.stored()).expiry).toEqual({ state: 11_000, requests: 11_000 });
  });

  test('leaves the lease of a replica that has joined again with a check that overtook the call', async () => {
    await r2.checkOrWait(['f'], { maxRequestsInQueue: 9 });
    await r2.withdraw(['d']);
    expect(await leased()).toEqual(['r1', 'r2']);
    await r2.withdraw(['f']);
    expect(await leased()).toEqual(['r1']);
  });

  test('that is withdrawn in a later window is not served, and the others are', async () => {
    await key.setTime(1000);
    await r1.withdraw(['c']);
    expect(await key.stored()).toMatchObject({ state: { start: 1000 }, requests: ['d', 'e'] });
  });
});

describe('an approval that crossed', () => {
  test('is released, and the next waiter is served with it', async () => {
    await r1.release('a');
    await wakes.take();
    await r1.withdraw(['c']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2 },
      requests: ['b', 'd'],
      queue: [['e@r1', 3]],
    });
    expect(await wakes.take()).toEqual([
      `{"at":${key.startMillis + 10},"number":2,"millisToRoom":990,"waiting":1,"waitingFrom":${key.absoluteTicket(3)},` +
        '"limits":"1000:2:3","max":2,"approved":2,"granted":["d"]}',
    ]);
  });

  test('is released once', async () => {
    await r1.withdraw(['a']);
    const before = await key.stored();
    await r1.withdraw(['a']);
    expect(await key.stored()).toEqual(before);
  });

  test('of an earlier window releases nothing', async () => {
    await key.setTime(1000);
    await r1.settle();
    await r1.withdraw(['a']);
    expect((await key.stored()).requests).toEqual(['c', 'd']);
  });
});

test('waiters and approvals in one call serve only the remaining waiters, with one wake', async () => {
  await r1.withdraw(['a', 'c', 'b', 'unknown']);
  const { state, requests, replicas } = await key.stored();
  expect([state?.approved, requests, replicas]).toEqual([2, ['d', 'e'], {}]);
  expect(await wakes.read()).toMatchObject([{ granted: ['d', 'e'] }]);
});

test('an unknown key is not made', async () => {
  const unknown = await ScriptHarness.create(redis.client);
  await unknown.replica('r1').withdraw(['a']);
  expect((await unknown.stored()).expiry).toEqual({});
});

test('1000 ids go in one call', async () => {
  const many = await ScriptHarness.create(redis.client);
  const replica = many.replica('r1', { limits: { maxRequestsInQueue: 2000 } });
  const ids = Array.from({ length: 1000 }, (_, i) => `w${i}`);
  await replica.check(['a', 'b']);
  await replica.checkOrWait([...ids, 'last']);
  await replica.withdraw(ids);
  expect((await many.stored()).queue).toEqual([['last@r1', 1001]]);
});

describe('several keys in one call', () => {
  const SMALL = { windowMillis: 3_600_000, maxRequests: 1, maxRequestsInQueue: 1 };
  let limits: Map<string, DeclaredLimits>;
  let names: KeyNames[];
  let scripts: Scripts;
  beforeEach(async () => {
    limits = new Map();
    names = ['a', 'b', 'c'].map((end) => new KeyNaming('sluice:').namesOf(uniqueKey() + end));
    scripts = scriptsOfManyKeys(redis.client, (name) => limits.get(name) ?? SMALL, {
      // The rules of this replica are newer than all others.
      history: '9999999999999:0:0',
    });
    const checks = [{ requestId: 'id', canWait: true }];
    await scripts.check(names.map((of) => checkBatchOf(of, checks)));
    await scripts.check([checkBatchOf(names[1]!, [{ requestId: 'waiter', canWait: true }])]);
  });

  test('are withdrawn separately, and say how many waiters and approvals they had', async () => {
    const replies = await scripts.withdraw([
      { names: names[0]!, claims: ['id', 'unknown'] },
      { names: names[1]!, claims: ['waiter', 'id', 'id'] },
      { names: names[2]!, claims: ['unknown'] },
    ]);
    expect(replies).toEqual([1, 2, 0]);
  });

  test('do not affect each other if one fails', async () => {
    await redis.client.del(names[1]!.state);
    await redis.client.set(names[1]!.state, 'not ours');
    const replies = await scripts.withdraw(names.map((of) => ({ names: of, claims: ['id'] })));
    expect(replies).toEqual([1, expect.any(Error) as Error, 1]);
    expect((replies[1] as Error).message).toMatch(/WRONGTYPE/);
    await redis.client.del(names[1]!.state);
  });

  test('each have their own limits', async () => {
    limits.set(names[2]!.key, { ...SMALL, windowMillis: 60_000 });
    // So another window begins.
    const earlier = Date.now() - 3_600_000;
    for (const { state } of names) await redis.client.hset(state, 'start', earlier);
    await scripts.withdraw(names.map((of) => ({ names: of, claims: ['unknown'] })));
    const stored = await Promise.all(names.map(({ state }) => redis.client.hget(state, 'limits')));
    expect(stored).toEqual(['3600000:1:1', '3600000:1:1', '60000:1:1']);
  });
});
