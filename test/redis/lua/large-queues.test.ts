import { useScriptHarness } from '../../support/script-harness.js';
import { elementsRead } from '../../support/elements-read.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

/** More values than Lua can unpack, since its C stack takes 8000. */
const MANY = 9000;
const waiters = Array.from({ length: MANY }, (_, i) => `w${String(i).padStart(4, '0')}`);
const limits = { windowMillis: 60_000, maxRequests: 1, maxRequestsInQueue: MANY };

const key = useScriptHarness(redis);
const replica = key.replica('r1', { limits });

/** Approves one check, and lets {@link MANY} wait. */
async function fill(): Promise<void> {
  await replica.check(['first']);
  const tickets = await replica.checkOrWait(waiters);
  expect(tickets).toEqual(waiters.map((_id, i) => i + 1));
}

test('9000 checks are decided in one call', async () => {
  const wide = key.replica('r1', { limits: { ...limits, maxRequests: MANY - 1 } });
  const verdicts = await wide.check(waiters);
  expect(verdicts.filter((verdict) => verdict === 'approved')).toHaveLength(MANY - 1);
  expect(verdicts.at(-1)).toBe('denied');
  const again = { limits: { ...limits, maxRequests: MANY - 1 }, guard: sentAgain };
  expect(await key.replica('r1', again).check(waiters)).toEqual(verdicts);
  expect((await key.stored()).state).toMatchObject({ approved: MANY - 1, denied: 1 });
});

/** The most that one call serves. */
const MOST_SERVED = 500;

test('9000 waiters are served in several calls, in order, with a wake for each call', async () => {
  await fill();
  const wakes = await recordWakes(key.names.wakeChannel);
  // A newcomer raises the maximum, but still comes after the waiters before it.
  expect(await replica.check(['late'], { maxRequests: 1_000_000 })).toEqual(['denied']);
  let granted = (await key.stored()).requests.length - 1;
  expect(granted).toBe(MOST_SERVED);
  for (; granted < MANY; granted += MOST_SERVED) {
    const isLast = granted + MOST_SERVED === MANY;
    expect(await replica.settle()).toMatchObject({
      millisToRoom: isLast ? 60_000 : 0,
      granted: waiters.slice(granted, granted + MOST_SERVED),
    });
  }
  expect(await replica.check(['newcomer'])).toEqual(['approved']);
  expect(await key.stored()).toMatchObject({
    state: { approved: MANY + 2, denied: 1 },
    requests: ['first', 'newcomer', ...waiters],
    queue: [],
    replicas: {},
  });
  const published = await wakes.read();
  expect(published.map(({ millisToRoom }) => millisToRoom)).toEqual([
    ...Array.from({ length: MANY / MOST_SERVED - 1 }, () => 0),
    60_000,
  ]);
  expect(published.flatMap(({ granted: ids }) => ids)).toEqual(waiters);
});

test('9000 waiters are served at the end of a window, and reported in order', async () => {
  const wide = key.replica('r1', { limits: { ...limits, maxRequests: MANY } });
  await wide.check(waiters.map((id) => `approved before ${id}`));
  await wide.checkOrWait(waiters);
  await key.setTime(limits.windowMillis - 1000);
  // Renews the lease.
  await wide.settle();
  await key.setTime(limits.windowMillis);
  const granted: string[] = [];
  let reply = await wide.settle();
  for (; reply.millisToRoom === 0; reply = await wide.settle()) granted.push(...reply.granted);
  expect([...granted, ...reply.granted]).toEqual(waiters);
  expect(await key.stored()).toMatchObject({ state: { approved: MANY }, requests: waiters });
});

test('9000 waiters of a dead replica take no place from living replicas', async () => {
  await fill();
  await key.setTime(5000);
  const other = key.replica('r2', { limits, history: { since: 0 } });
  expect(await other.checkOrWait(['new'])).toEqual([5_000_000]);
  expect(await other.inspect()).toMatchObject({ used: 1, waiting: 1 });
});

test('waiters of replicas that die one after the other do not accumulate', async () => {
  await fill();
  await key.setTime(5000);
  await key.replica('r2', { limits }).checkOrWait(waiters.map((id) => `second ${id}`));
  await key.setTime(10_000);
  const third = key.replica('r3', { limits });
  await third.checkOrWait(waiters.map((id) => `third ${id}`));
  expect(await key.queued()).toEqual(waiters.map((id) => `third ${id}@r3`));
  expect((await key.stored()).replicas).toEqual({ r3: 15_000 });
});

test('waiters of replicas that die one after the other do not accumulate behind one that lives', async () => {
  const most = { ...limits, maxRequestsInQueue: 101 };
  const living = key.replica('living', { limits: most });
  await living.check(['first']);
  await living.checkOrWait(['patient']);
  const hundred = (round: number): string[] => waiters.slice(0, 100).map((id) => `${id}-${round}`);
  for (let round = 1; round <= 4; round += 1) {
    await key.setTime(5000 * round - 2500);
    await living.settle();
    await key.setTime(5000 * round);
    await living.settle();
    await key.replica(`r${round}`, { limits: most }).checkOrWait(hundred(round));
  }
  expect(await key.queued()).toEqual(['patient@living', ...hundred(4).map((id) => `${id}@r4`)]);
  expect((await key.stored()).replicas).toEqual({ living: 25_000, r4: 25_000 });
});

test('9000 waiters of a dead replica are passed over, in several calls', async () => {
  await fill();
  await key.setTime(4999);
  await replica.withdraw(['w0000']);
  const other = key.replica('r2', { limits, history: { since: 0 } });
  await other.checkOrWait(['new']);
  await key.setTime(5000);
  expect(await other.release('first')).toBe(true);
  let reply = await other.settle();
  while (reply.millisToRoom === 0) reply = await other.settle();
  expect(reply.granted).toEqual(['new']);
  expect(await key.stored()).toMatchObject({ requests: ['new'], queue: [], replicas: {} });
});

test('9000 lost waiters are put back in one call', async () => {
  await fill();
  await key.lose('queue', 'waiting', 'replicas');
  const tickets: Record<string, number> = {};
  for (let i = MANY; i > 0; i -= 1) tickets[waiters[i - 1]!] = i;
  expect(await replica.settle(tickets)).toMatchObject({
    waiting: MANY,
    places: MANY,
    granted: [],
  });
  expect(await key.queued()).toEqual(waiters.map((id) => `${id}@r1`));
});

test('a key that keeps no more ids reads no waiters in vain', async () => {
  const bounded = key.replica('r1', {
    limits: { maxRequests: 9000, maxRequestsInQueue: 9000 },
    maxIdsPerKey: 2,
  });
  await bounded.check(['f1', 'f2']);
  await bounded.checkOrWait(Array.from({ length: 500 }, (_, i) => `w${i}`));
  const read = await elementsRead(redis.client, key.names.state, async () => {
    expect(await bounded.check(['x'])).toEqual(['key full']);
  });
  expect(read).toBeLessThan(10);
});

test('waiters that need no hold are served in few steps where no more approvals are held', async () => {
  const wide = { windowMillis: 60_000, maxRequests: 500, maxRequestsInQueue: MANY };
  const bounded = key.replica('r1', { limits: wide, maxHoldsPerKey: 1 });
  await bounded.checkHold('held', 50_000);
  await bounded.pause(10_000);
  const ids = waiters.slice(0, 400);
  await bounded.checkOrWait(ids);
  await bounded.withdraw(ids.filter((_id, i) => i % 2 === 1));
  const lists = async (): Promise<number> =>
    Number(/cmdstat_lrange:calls=(\d+)/.exec(await redis.client.info('commandstats'))?.[1] ?? 0);
  const before = await lists();
  await bounded.pause(0);
  expect((await lists()) - before).toBeLessThan(15);
  expect(await key.counted()).toEqual({ approved: 201, held: 1 });
  expect(await key.queued()).toEqual([]);
});

test('a look that names no waiter reads none, in one list and in several', async () => {
  await fill();
  expect(await elementsRead(redis.client, key.names.state, () => replica.examine(0))).toBeLessThan(
    10,
  );
  const list = { kind: 'lane', name: 'batch', headStartMillis: 0 } as const;
  await replica.checkBatch([{ requestId: 'lane', canWait: true, list }], {
    maxRequestsInQueue: MANY + 1,
  });
  expect(await elementsRead(redis.client, key.names.state, () => replica.examine(0))).toBeLessThan(
    10,
  );
});

test('a check of a group whose places are taken reads no waiter while all replicas live', async () => {
  const list = { kind: 'group', name: 'busy', weight: 1, maxRequests: 1000 } as const;
  await replica.check(['first']);
  for (const requestId of waiters.slice(0, 1000)) {
    await replica.checkBatch([{ requestId, canWait: true, list }]);
  }
  const read = await elementsRead(redis.client, key.names.state, async () => {
    const denied = await replica.checkBatch([{ requestId: 'late', canWait: true, list }]);
    expect(denied).toEqual(['queue full of group']);
  });
  expect(read).toBeLessThan(10);
});
