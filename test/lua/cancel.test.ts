import { loadScript } from '../../src/redis/script-loader.js';
import { ScriptHarness, type TestReplica } from '../support/script-harness.js';
import { useRedis } from '../support/use-redis.js';
import { useWakeRecorder, type WakeRecorder } from '../support/wake-recorder.js';

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
  test('leaves the queue, and nobody is woken', async () => {
    await r1.cancel(['c']);
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
    await r1.cancel(['c']);
    expect(await r1.checkOrWait(['f'])).toEqual([10_000]);
  });

  test('stays where another replica asks for it', async () => {
    const before = await key.stored();
    await r2.cancel(['c']);
    expect(await key.stored()).toEqual(before);
  });

  test('that was the last one takes the leases along', async () => {
    await r1.cancel(['c', 'e'], true);
    await r2.cancel(['d'], true);
    expect(await key.stored()).toMatchObject({
      queue: [],
      replicas: {},
      expiry: { state: 4000, requests: 4000 },
    });
  });
});

describe('an approval that crossed', () => {
  test('is given back, and the next waiter is served with it', async () => {
    await r1.release('a');
    expect((await key.stored()).requests).toEqual(['b', 'c']);
    await wakes.take();
    await r1.cancel(['c']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2 },
      requests: ['b', 'd'],
      queue: [['e@r1', 3]],
    });
    expect(await wakes.take()).toEqual([
      `{"windowEndsInMillis":990,"waiting":1,"waitingFrom":${key.absoluteTicket(3)},` +
        '"granted":["d"]}',
    ]);
  });

  test('is given back where nobody waits', async () => {
    const alone = await ScriptHarness.create(redis.client);
    const replica = alone.replica('r1');
    await replica.check(['a', 'b']);
    await replica.cancel(['a']);
    expect(await alone.stored()).toMatchObject({ state: { approved: 1 }, requests: ['b'] });
    expect(await replica.check(['c', 'd'])).toEqual(['approved', 'denied']);
  });

  test('is given back once', async () => {
    await r1.cancel(['a']);
    const before = await key.stored();
    await r1.cancel(['a']);
    expect(await key.stored()).toEqual(before);
  });

  test('of an earlier window gives nothing back', async () => {
    await key.setTime(1000);
    await r1.settle();
    expect((await key.stored()).requests).toEqual(['c', 'd']);
    await r1.cancel(['a']);
    expect((await key.stored()).requests).toEqual(['c', 'd']);
  });
});

test('waiters and approvals in one call serve only those who go on waiting, by one wake', async () => {
  await r1.cancel(['a', 'c', 'b', 'unknown']);
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
  await r1.cancel(['c']);
  expect(await key.stored()).toMatchObject({
    state: { start: 1000, approved: 2 },
    requests: ['d', 'e'],
  });
});

describe('the lease', () => {
  test('ends where the replica holds no other waiter', async () => {
    await r2.cancel(['d'], true);
    expect(await key.stored()).toMatchObject({
      queue: [
        ['c@r1', 1],
        ['e@r1', 3],
      ],
    });
    expect((await key.stored()).replicas).toEqual({ r1: 5000 });
  });

  test('ends without an id too', async () => {
    await r2.cancel(['d'], false);
    await r2.cancel([], true);
    expect((await key.stored()).replicas).toEqual({ r1: 5000 });
  });

  test('goes on where the replica has joined again, by a check that overtook the call', async () => {
    await r2.checkOrWait(['f'], { maxRequestsInQueue: 9 });
    await r2.cancel(['d'], true);
    expect(Object.keys((await key.stored()).replicas).sort()).toEqual(['r1', 'r2']);
    await r2.cancel(['f'], true);
    expect(Object.keys((await key.stored()).replicas)).toEqual(['r1']);
  });

  test('goes on where the replica holds others', async () => {
    await r1.cancel(['c'], false);
    expect((await key.stored()).replicas).toEqual({ r1: 5000, r2: 5000 });
  });
});

test('a key that there is not is not made', async () => {
  const unknown = await ScriptHarness.create(redis.client);
  await unknown.replica('r1').cancel(['a'], true);
  expect((await unknown.stored()).expiry).toEqual({});
});

test('1000 ids go in one call', async () => {
  const many = await ScriptHarness.create(redis.client);
  const replica = many.replica('r1', { limits: { maxRequestsInQueue: 2000 } });
  const ids = Array.from({ length: 1000 }, (_, i) => `w${i}`);
  await replica.check(['a', 'b']);
  await replica.checkOrWait([...ids, 'last']);
  await replica.cancel(ids);
  expect((await many.stored()).queue).toEqual([['last@r1', 1001]]);
});

test('the reply says how many were withdrawn or gave their approval back', async () => {
  const { text } = loadScript('cancel', key.replacements);
  const { state, requests, queue, replicas } = key.names;
  const cancel = (...ids: string[]): Promise<unknown> =>
    redis.client.eval(text, 4, state, requests, queue, replicas, 1000, 5000, 'r1', '0', ...ids);
  expect(await cancel('a', 'c', 'd', 'unknown')).toBe(2);
  expect(await cancel('a', 'c')).toBe(0);
});
