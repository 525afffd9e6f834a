import { useScriptHarness, TEST_LEASE_MILLIS } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

const limits = {
  maxRequestsInQueue: 2000,
  further: [
    { name: 'ten', windowMillis: 10_000, maximum: 3, counts: 'requests', keepsReleased: false },
  ],
} as const;

const key = useScriptHarness(redis);
const [first, second] = [key.replica('r1', { limits }), key.replica('r2', { limits })];

/** Two waiters on the first replica, and one on the second between them. */
async function queue(): Promise<void> {
  await first.check(['a', 'b', 'x']);
  await first.checkOrWait(['c']);
  await key.setTime(100);
  await second.checkOrWait(['d']);
  await key.setTime(250);
  await first.checkOrWait(['e']);
}

test('a look at a key that does not exist makes none', async () => {
  expect([await first.inspect(), await first.examine()]).toEqual([undefined, undefined]);
  expect((await key.stored()).expiry).toEqual({});
});

test('the waiters of all replicas are listed in the order of the queue, with the lease of each replica', async () => {
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

test('withdrawn waiters at the head do not count towards the most that are listed', async () => {
  await queue();
  await first.withdraw(['c']);
  expect((await first.examine(1))?.queue).toEqual([{ replica: 'r2', waitedMillis: 150 }]);
});

test('a replica whose lease has run out shows its places, and its waiters neither count nor are listed', async () => {
  await queue();
  await key.setTime(100 + TEST_LEASE_MILLIS - 1);
  expect(await first.inspect()).toMatchObject({ waiting: 3 });
  await key.setTime(100 + TEST_LEASE_MILLIS);
  expect(await first.inspect()).toMatchObject({ waiting: 2 });
  const seen = await first.examine();
  expect(seen?.queue.map(({ replica }) => replica)).toEqual(['r1', 'r1']);
  expect(seen?.replicas).toContainEqual({ replica: 'r2', places: 1, leaseMillis: 0 });
});

test('a key with waiters is found as long as a lease runs', async () => {
  const plain = key.replica('r1');
  await plain.check(['a', 'b']);
  await plain.checkOrWait(['c']);
  await key.setTime(TEST_LEASE_MILLIS - 1);
  expect(await plain.inspect()).toMatchObject({ used: 0, waiting: 1 });
  await key.setTime(TEST_LEASE_MILLIS);
  expect(await plain.inspect()).toBeUndefined();
});

test('a key says that it recovers after Redis was down', async () => {
  await queue();
  await key.setTime(50_000);
  expect((await first.examine())?.isRecovering).toBeUndefined();
  await first.settle({ c: 0, e: 250_000 }, 100);
  expect(await first.examine()).toMatchObject({ isRecovering: true, waiting: 3 });
});

test('a bounded number of entries of a long queue is read', async () => {
  await first.check(['a', 'b']);
  const ids = Array.from({ length: 1500 }, (_, i) => `w${i}`);
  await first.checkOrWait(ids);
  expect((await first.examine(50))?.queue).toHaveLength(50);
  await first.withdraw(ids.slice(0, 700));
  expect(await first.examine(50)).toMatchObject({ waiting: 800, queue: [] });
});

test.each([-1, -50_000])(
  'after the clock has gone back to %d a window is shown that begins now, and a pause of its length',
  async (now) => {
    await queue();
    await first.pause(400);
    await key.setTime(now);
    const own = { used: 2, millisToWindowEnd: 1000 };
    const expected = { limits: [own, {}], held: 0, denied: 1, waiting: 3, pausedMillis: 400 };
    expect(await first.inspect()).toMatchObject(expected);
    expect(await first.examine()).toMatchObject(expected);
  },
);

test.each([
  ['within the window', 500],
  ['after the end of the window', 1000],
  ['when holds have lapsed', 1500],
  ['when the leases have run out', 6000],
  ['when the key is idle', 50_000],
  ['when the clock has gone back', -50_000],
])('a look writes nothing %s', async (_when, now) => {
  await first.checkHold('held', 1400);
  await queue();
  const names = await redis.client.keys(`${key.names.state}*`);
  const contents = (): Promise<unknown[]> =>
    Promise.all(
      names.map(async (name) => [
        await redis.client.pexpiretime(name),
        (await redis.client.dumpBuffer(name)).toString('hex'),
      ]),
    );
  const before = await contents();
  expect(before.length).toBeGreaterThan(6);
  await key.setTime(now);
  await first.inspect();
  await first.examine();
  expect(await contents()).toEqual(before);
});
