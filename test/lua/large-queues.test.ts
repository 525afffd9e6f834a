import { ScriptHarness, type TestReplica } from '../support/script-harness.js';
import { useRedis } from '../support/use-redis.js';
import { useWakeRecorder } from '../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

/** More than Lua can unpack: its C stack takes 8000 values. */
const MANY = 9000;
const waiters = Array.from({ length: MANY }, (_, i) => `w${String(i).padStart(4, '0')}`);
const limits = { windowMillis: 60_000, maxRequests: 1, maxRequestsInQueue: MANY };

let key: ScriptHarness;
let replica: TestReplica;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  replica = key.replica('r1', { limits });
});

/** One approved, and {@link MANY} waiting. */
async function fill(): Promise<void> {
  await replica.check(['first']);
  const tickets = await replica.checkOrWait(waiters);
  expect(tickets).toEqual(waiters.map((_id, i) => i + 1));
}

test('as many checks as that are decided in one call', async () => {
  const wide = key.replica('r1', { limits: { ...limits, maxRequests: MANY - 1 } });
  const verdicts = await wide.check(waiters);
  expect(verdicts.filter((verdict) => verdict === 'approved')).toHaveLength(MANY - 1);
  expect(verdicts.at(-1)).toBe('denied');
  expect(await wide.check(waiters)).toEqual(verdicts);
  expect((await key.stored()).state).toMatchObject({ approved: MANY - 1, denied: 2 });
});

test('as many waiters as that are served in one call, in order, with one wake', async () => {
  await fill();
  const wakes = await recordWakes(key.names.wakeChannel);
  expect(await replica.check(['late'], { maxRequests: 1_000_000 })).toEqual(['approved']);
  const stored = await key.stored();
  expect(stored).toMatchObject({ state: { approved: MANY + 2 }, queue: [], replicas: {} });
  expect(stored.requests).toEqual(['first', 'late', ...waiters]);
  const published = (await wakes.take()).map((wake) => JSON.parse(wake) as { granted: string[] });
  expect(published).toHaveLength(1);
  expect(published[0]!.granted).toEqual(waiters);
});

test('as many waiters as that are served at the end of a window, and reported in order', async () => {
  const wide = key.replica('r1', { limits: { ...limits, maxRequests: MANY } });
  await wide.check(waiters.map((id) => `approved before ${id}`));
  await wide.checkOrWait(waiters);
  await key.setTime(limits.windowMillis - 1000);
  // Renews the lease.
  await wide.settle();
  await key.setTime(limits.windowMillis);
  expect((await wide.settle()).granted).toEqual(waiters);
  expect(await key.stored()).toMatchObject({ state: { approved: MANY }, requests: waiters });
});

test('as many waiters of a dead replica as that are purged in one call', async () => {
  await fill();
  await key.setTime(5000);
  expect(await key.replica('r2', { limits }).checkOrWait(['new'])).toEqual([5_000_000]);
  expect(await key.stored()).toMatchObject({
    state: { approved: 1 },
    queue: [['new@r2', 5_000_000]],
    replicas: { r2: 10_000 },
  });
});

test('as many waiters of a dead replica as that are passed over in one call', async () => {
  await fill();
  await key.setTime(4999);
  await replica.cancel(['w0000']);
  const other = key.replica('r2', { limits });
  await other.checkOrWait(['new']);
  await key.setTime(5000);
  expect(await other.release('first')).toBe(true);
  expect(await key.stored()).toMatchObject({ requests: ['new'], queue: [], replicas: {} });
});

test('as many lost waiters as that are put back in one call', async () => {
  await fill();
  await redis.client.del(key.names.queue);
  const tickets: Record<string, number> = {};
  for (let i = MANY; i > 0; i -= 1) tickets[waiters[i - 1]!] = i;
  expect(await replica.settle(tickets)).toMatchObject({
    waiting: MANY,
    waitingFrom: 1,
    granted: [],
  });
  expect((await key.stored()).queue.map(([member]) => member)).toEqual(
    waiters.map((id) => `${id}@r1`),
  );
});

test('as many waiters as that are counted without the dead', async () => {
  await fill();
  expect(await replica.inspect()).toMatchObject({ waiting: MANY });
  await key.setTime(5000);
  expect(await replica.inspect()).toMatchObject({ waiting: 0 });
});
