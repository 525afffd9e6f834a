import { useScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);

const key = useScriptHarness(redis);
const replica = key.replica('r1', { limits: { maxRequests: 1 } });
/** The ticket of b, which waits for a's approval to end. */
let ticket: number;
beforeEach(async () => {
  expect(await replica.check(['a'])).toEqual(['approved']);
  ticket = (await replica.checkOrWait(['b']))[0] as number;
});

/** Redis loses everything but the list, which holds c before b, out of order. */
async function loseOrder(): Promise<number> {
  await key.setTime(1);
  await key.lose('state', 'waiting', 'replicas', 'queue');
  const known = { lowestTicket: ticket, millisToWindowEnd: 999 };
  const verdicts = await replica.checkBatch([{ requestId: 'c', canWait: true }], {}, known);
  await replica.settle({ b: ticket });
  return verdicts[0] as number;
}

describe('a list that Redis has lost alone', () => {
  beforeEach(() => key.lose('queue'));

  test('is noticed by the next waiter that joins', async () => {
    await replica.checkOrWait(['c']);
    expect(await key.queued()).toEqual(['c@r1']);
  });

  test('gets earlier waiters back before later ones', async () => {
    await key.setTime(1);
    await replica.checkOrWait(['c']);
    expect(await replica.settle({ b: ticket })).toMatchObject({ places: 2 });
    await key.setTime(600);
    await replica.settle();
    expect(await key.queued()).toEqual(['b@r1', 'c@r1']);
  });
});

test.each([
  [['queue']],
  [['waiting']],
  [['replicas']],
  [['queue', 'waiting']],
  [['queue', 'replicas']],
  [['waiting', 'replicas']],
] as const)('no newcomer overtakes waiters if only %j was removed', async (removed) => {
  const other = key.replica('r2', { limits: { maxRequests: 1 }, history: { since: 0 } });
  await key.lose(...removed);
  await key.setTime(1000);
  expect(await other.check(['x'])).toEqual(['denied']);
  await replica.settle({ b: ticket });
  await key.setTime(1500);
  expect(await other.check(['y'])).toEqual(['denied']);
  expect(await replica.settle({ b: ticket })).toMatchObject({ granted: ['b'] });
});

test('a list out of order is sorted if Redis has lost the state alone', async () => {
  const ticketOfC = await loseOrder();
  await key.lose('state');
  await replica.settle({ c: ticketOfC }, 999);
  await replica.settle({ b: ticket }, 999);
  await key.setTime(600);
  await replica.settle();
  expect(await key.queued()).toEqual(['b@r1', 'c@r1']);
});

test('no newcomer overtakes waiters if Redis has lost the state alone', async () => {
  const other = key.replica('r2', { limits: { maxRequests: 1 } });
  await key.setTime(1);
  await key.lose('state');
  const known = { lowestTicket: ticket, millisToWindowEnd: 999 };
  const check = { requestId: 'c', canWait: false };
  expect(await replica.checkBatch([check], {}, known)).toEqual(['denied']);
  // The hold ends, and the next window begins.
  for (const now of [600, 1100]) {
    await key.setTime(now);
    expect(await other.check([`newcomer-${now}`])).toEqual(['denied']);
  }
  expect(await replica.settle({ b: ticket })).toMatchObject({ granted: ['b'] });
});

test('a waiter that is withdrawn after Redis has lost the state alone no longer waits', async () => {
  await key.lose('state');
  await replica.withdraw(['b']);
  expect(await redis.client.hkeys(key.names.waiting)).toEqual([]);
});

// The harness itself fails if a key that exists has no expiry.
test('leases that are made again after Redis has lost them alone have an expiry', async () => {
  await key.lose('replicas');
  await replica.checkOrWait(['c'], { maxRequestsInQueue: 0 });
  await key.lose('replicas');
  await replica.check(['d']);
  await replica.checkOrWait(['e']);
});

test('a list out of order has an expiry after Redis has lost the hash of waiters', async () => {
  await loseOrder();
  await key.lose('waiting');
  await key.setTime(600);
  await replica.settle();
});

test('a queue that loses its list in a hold calls for its waiters again, and holds for them', async () => {
  const wakes = await recordWakes(key.names.wakeChannel);
  await key.lose('queue');
  await key.setTime(10);
  await replica.settle();
  await key.setTime(400);
  await replica.settle({ b: ticket });
  await key.lose('queue');
  await key.setTime(500);
  await replica.settle();
  expect((await wakes.take()).filter((text) => text.includes('memoryLost'))).toHaveLength(2);
  expect((await key.stored()).state).toMatchObject({ holdUntil: 1000 });
});
