import {
  ScriptHarness,
  TEST_LEASE_MILLIS,
  type TestReplica,
} from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

let key: ScriptHarness;
let first: TestReplica;
let second: TestReplica;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  first = key.replica('r1', { limits: { maxRequestsInQueue: 2000 } });
  second = key.replica('r2', { limits: { maxRequestsInQueue: 2000 } });
});

/** Two waiters on the first replica, and one on the second between them. */
async function queue(): Promise<void> {
  await first.check(['a', 'b', 'x']);
  await first.checkOrWait(['c']);
  await key.setTime(100);
  await second.checkOrWait(['d']);
  await key.setTime(250);
  await first.checkOrWait(['e']);
}

test('finds nothing if there is no key', async () => {
  expect(await first.examine()).toBeUndefined();
  expect((await key.stored()).expiry).toEqual({});
});

test('lists the waiters with their replicas, in the order of the queue, and the lease of each replica', async () => {
  await queue();
  await key.setTime(400);

  expect(await first.examine()).toEqual({
    ...(await first.inspect()),
    overridden: { maxRequests: false, maxRequestsInQueue: false, windowMillis: false },
    isRecovering: false,
    queue: [
      { replica: 'r1', waitedMillis: 400 },
      { replica: 'r2', waitedMillis: 300 },
      { replica: 'r1', waitedMillis: 150 },
    ],
    replicas: expect.arrayContaining([
      { replica: 'r1', places: 2, leaseMillis: TEST_LEASE_MILLIS - 150 },
      { replica: 'r2', places: 1, leaseMillis: TEST_LEASE_MILLIS - 300 },
    ]) as unknown,
  });
});

test('passes over withdrawn waiters at the head, and does not count them towards its maximum', async () => {
  await queue();
  await first.withdraw(['c']);
  expect((await first.examine(1))?.queue).toEqual([{ replica: 'r2', waitedMillis: 150 }]);
});

test('shows the places of a replica whose lease has run out, but not its waiters', async () => {
  await queue();
  await key.setTime(100 + TEST_LEASE_MILLIS);
  const seen = await first.examine();
  expect(seen?.queue.map(({ replica }) => replica)).toEqual(['r1', 'r1']);
  expect(seen?.replicas).toContainEqual({ replica: 'r2', places: 1, leaseMillis: 0 });
});

test('says that a key is held after Redis was down', async () => {
  await queue();
  await key.setTime(50_000);
  expect((await first.examine())?.isRecovering).toBeUndefined();
  await first.settle({ c: 0, e: 250_000 }, 100);
  expect(await first.examine()).toMatchObject({ isRecovering: true, waiting: 3 });
});

test('looks at a bounded number of entries of a long queue', async () => {
  await first.check(['a', 'b']);
  const ids = Array.from({ length: 1500 }, (_, i) => `w${i}`);
  await first.checkOrWait(ids);
  expect((await first.examine(50))?.queue).toHaveLength(50);
  await first.withdraw(ids.slice(0, 700));
  const seen = await first.examine(50);
  expect(seen).toMatchObject({ waiting: 800, queue: [] });
});

test('writes nothing', async () => {
  await queue();
  const dump = async (): Promise<unknown> => {
    const { state, requests, queue: list, waiting, replicas } = key.names;
    const contents = [state, requests, list, waiting, replicas].map((name) =>
      redis.client.dumpBuffer(name).then((bytes) => bytes.toString('hex')),
    );
    return [await key.expiry(), ...(await Promise.all(contents))];
  };
  for (const now of [500, 1000, 6000, 50_000, -50_000]) {
    await key.setTime(now);
    const before = await dump();
    await first.examine();
    expect(await dump()).toEqual(before);
  }
});
