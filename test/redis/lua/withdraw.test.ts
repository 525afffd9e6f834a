import { type DeclaredLimits, keyLimits } from '../../support/limits.js';
import { UNKNOWN_HISTORY } from '../../../src/redis/caller-history.js';
import { KeyNaming, type KeyNames } from '../../../src/redis/shared/key-names.js';
import { loadScript } from '../../../src/redis/scripts/script-loader.js';
import { Scripts } from '../../../src/redis/scripts/scripts.js';
import { keysOf } from '../../../src/redis/scripts/shared-arguments.js';
import { ScriptHarness, type TestReplica } from '../../support/script-harness.js';
import { unguarded } from '../../support/unguarded.js';
import { scriptClientParts } from '../../support/script-client-parts.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder, type WakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

let key: ScriptHarness;
let r1: TestReplica;
let r2: TestReplica;
let wakes: WakeRecorder;
/** a and b approved; c and e wait on r1, d on r2. */
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  [r1, r2] = [key.replica('r1'), key.replica('r2')];
  wakes = await recordWakes(key.names.wakeChannel);
  await r1.check(['a', 'b']);
  await r1.checkOrWait(['c']);
  await r2.checkOrWait(['d']);
  await r1.checkOrWait(['e']);
  await key.setTime(10);
});

describe('a waiter', () => {
  test('is withdrawn, and nobody is woken', async () => {
    await r1.withdraw(['c']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2, denied: 0 },
      requests: ['a', 'b'],
      queue: [
        ['d@r2', 2],
        ['e@r1', 3],
      ],
      replicas: { r1: 5000, r2: 5000 },
    });
    expect(await wakes.take()).toEqual([]);
  });

  test('makes room in a full queue', async () => {
    expect(await r1.checkOrWait(['f'])).toEqual(['queue full']);
    await r1.withdraw(['c']);
    expect(await r1.checkOrWait(['f'])).toEqual([10_000]);
  });

  test('that is the last one removes the leases', async () => {
    await r1.withdraw(['c', 'e']);
    await r2.withdraw(['d']);
    expect(await key.stored()).toMatchObject({
      queue: [],
      replicas: {},
      expiry: { state: 11_000, requests: 11_000 },
    });
  });
});

describe('an approval that crossed', () => {
  test('is released, and the next waiter is served with it', async () => {
    await r1.release('a');
    expect((await key.stored()).requests).toEqual(['b', 'c']);
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

  test('is released if nobody waits', async () => {
    const alone = await ScriptHarness.create(redis.client);
    const replica = alone.replica('r1');
    await replica.check(['a', 'b']);
    await replica.withdraw(['a']);
    expect(await alone.stored()).toMatchObject({ state: { approved: 1 }, requests: ['b'] });
    expect(await replica.check(['c', 'd'])).toEqual(['approved', 'denied']);
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
    expect((await key.stored()).requests).toEqual(['c', 'd']);
    await r1.withdraw(['a']);
    expect((await key.stored()).requests).toEqual(['c', 'd']);
  });
});

test('waiters and approvals in one call serve only the remaining waiters, with one wake', async () => {
  await r1.withdraw(['a', 'c', 'b', 'unknown']);
  expect(await key.stored()).toMatchObject({
    state: { approved: 2 },
    requests: ['d', 'e'],
    queue: [],
    replicas: {},
  });
  expect((await wakes.take()).map((wake) => JSON.parse(wake) as unknown)).toMatchObject([
    { granted: ['d', 'e'] },
  ]);
});

test('a waiter withdrawn in a later window is not served, and the others are', async () => {
  await key.setTime(1000);
  await r1.withdraw(['c']);
  expect(await key.stored()).toMatchObject({
    state: { start: 1000, approved: 2 },
    requests: ['d', 'e'],
  });
});

describe('the lease', () => {
  test('ends with the last waiter of the replica', async () => {
    await r2.withdraw(['d']);
    expect(await key.stored()).toMatchObject({
      queue: [
        ['c@r1', 1],
        ['e@r1', 3],
      ],
    });
    expect((await key.stored()).replicas).toEqual({ r1: 5000 });
  });

  test('goes on if the replica holds other waiters', async () => {
    await r1.withdraw(['c']);
    expect((await key.stored()).replicas).toEqual({ r1: 5000, r2: 5000 });
  });

  test('goes on if the replica has joined again with a check that overtook the call', async () => {
    await r2.checkOrWait(['f'], { maxRequestsInQueue: 9 });
    await r2.withdraw(['d']);
    expect(Object.keys((await key.stored()).replicas).sort()).toEqual(['r1', 'r2']);
    await r2.withdraw(['f']);
    expect(Object.keys((await key.stored()).replicas)).toEqual(['r1']);
  });
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

test('the reply says how many were withdrawn or released', async () => {
  const { text } = loadScript('withdraw', key.replacements);
  const keys = keysOf(key.names);
  const shared = ['r1', 5000, '1000:2:3', 'PUBLISH :wake', 1000, UNKNOWN_HISTORY];
  const withdraw = (...ids: string[]): Promise<unknown> =>
    redis.client.eval(text, keys.length, ...keys, ...shared, ids.length, ...ids);
  expect(await withdraw('a', 'c', 'e', 'unknown')).toEqual([3]);
  expect(await withdraw('a', 'c')).toEqual([0]);
});

describe('several keys in one call', () => {
  const SMALL = { windowMillis: 3_600_000, maxRequests: 1, maxRequestsInQueue: 1 };
  const overrides = { maxRequests: undefined, maxRequestsInQueue: undefined };
  let limits: Map<string, DeclaredLimits>;
  let names: KeyNames[];
  let scripts: Scripts;
  beforeEach(async () => {
    limits = new Map();
    names = ['a', 'b', 'c'].map((end) => new KeyNaming('sluice:').namesOf(uniqueKey() + end));
    scripts = new Scripts(scriptClientParts(redis.client), unguarded, {
      replicaId: 'r1',
      leaseMillis: 5000,
      limitsOf: (name) => keyLimits(limits.get(name) ?? SMALL),
      wakeArgument: 'PUBLISH :wake',
      maxIdsPerKey: 1000,
      maxHoldsPerKey: 100,
      // The rules of this replica are newer than all others.
      historyOf: () => '9999999999999:0:0',
    });
    const checks = [{ requestId: 'id', canWait: false }];
    await scripts.check(names.map((of) => ({ names: of, overrides, waiting: undefined, checks })));
  });

  const used = async (): Promise<unknown[]> =>
    (await scripts.inspect(names)).map(
      (state) => state && 'limits' in state && state.limits[0].used,
    );

  test('are withdrawn separately', async () => {
    const replies = await scripts.withdraw([
      { names: names[0]!, requestIds: ['id', 'unknown'] },
      { names: names[1]!, requestIds: ['unknown'] },
      { names: names[2]!, requestIds: ['id'] },
    ]);
    expect(replies).toEqual([1, 0, 1]);
    expect(await used()).toEqual([0, 1, 0]);
  });

  test('a key that fails affects no other', async () => {
    await redis.client.del(names[1]!.state);
    await redis.client.set(names[1]!.state, 'not ours');
    const replies = await scripts.withdraw(names.map((of) => ({ names: of, requestIds: ['id'] })));
    expect(replies).toEqual([1, expect.any(Error) as Error, 1]);
    expect((replies[1] as Error).message).toMatch(/WRONGTYPE/);
    await redis.client.del(names[1]!.state);
  });

  test('each key has its own limits', async () => {
    limits.set(names[2]!.key, { ...SMALL, windowMillis: 60_000 });
    // So another window begins.
    const earlier = Date.now() - 3_600_000;
    for (const { state } of names) await redis.client.hset(state, 'start', earlier);
    await scripts.withdraw(names.map((of) => ({ names: of, requestIds: ['unknown'] })));
    const stored = await Promise.all(names.map(({ state }) => redis.client.hget(state, 'limits')));
    expect(stored).toEqual(['3600000:1:1', '3600000:1:1', '60000:1:1']);
  });
});
