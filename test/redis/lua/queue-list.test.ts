import { useScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

const limits = { windowMillis: 60_000, maxRequests: 1, maxRequestsInQueue: 1000 };
/** A list is not compacted for fewer entries than this. */
const SLACK = 100;

const key = useScriptHarness(redis);
const [r1, r2] = [key.replica('r1', { limits }), key.replica('r2', { limits })];
beforeEach(() => r1.check(['first']));

const ids = (count: number, prefix = 'w'): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

test('LRANGE shows the waiters with their tickets, first come, first served', async () => {
  await r1.checkOrWait(['a']);
  await r2.checkOrWait(['b']);
  const ticket = (relative: number): string => String(key.absoluteTicket(relative));
  expect(await redis.client.lrange(key.names.queue, 0, -1)).toEqual([
    `${ticket(1)}:a@r1`,
    `${ticket(2)}:b@r2`,
  ]);
  expect(await redis.client.hgetall(key.names.waiting)).toEqual({ a: ticket(1), b: ticket(2) });
  const leaseEnds = key.startMillis + 5000;
  expect(await redis.client.hgetall(key.names.replicas)).toEqual({
    r1: `${leaseEnds}:1`,
    r2: `${leaseEnds}:1`,
  });
});

test('a withdrawn waiter that comes again is behind waiters that came before its return', async () => {
  await r1.checkOrWait(['a']);
  await r1.checkOrWait(['b']);
  await r1.withdraw(['a']);
  await r1.checkOrWait(['a']);
  expect(await key.queued()).toEqual(['b@r1', 'a@r1']);
  await r1.release('first');
  expect((await key.stored()).requests).toEqual(['b']);
});

test('more withdrawn entries than are read at once are passed over in one call', async () => {
  await r1.checkOrWait(ids(350));
  await r1.withdraw(ids(349));
  await r1.release('first');
  expect(await key.stored()).toMatchObject({ requests: ['w349'], queue: [], withdrawnEntries: 0 });
});

describe('when more than half of the list is withdrawn', () => {
  beforeEach(async () => {
    await r1.checkOrWait(ids(3 * SLACK));
    await r1.withdraw(ids(3 * SLACK).filter((_, i) => i % 10 !== 0));
    expect(await key.stored()).toMatchObject({ withdrawnEntries: 2.7 * SLACK });
  });
  const left = ids(3 * SLACK).filter((_, i) => i % 10 === 0);

  test('the next waiter that joins leaves only entries of waiters', async () => {
    await r2.checkOrWait(['new']);
    expect(await key.stored()).toMatchObject({ withdrawnEntries: 0 });
    expect(await key.queued()).toEqual([...left.map((id) => `${id}@r1`), 'new@r2']);
  });

  test('the next settle leaves only entries of waiters', async () => {
    await r1.settle();
    expect(await key.stored()).toMatchObject({ withdrawnEntries: 0 });
    expect(await key.queued()).toEqual(left.map((id) => `${id}@r1`));
  });
});

test('a list with fewer withdrawn entries stays unchanged', async () => {
  await r1.checkOrWait(ids(3 * SLACK));
  await r1.withdraw(ids(SLACK));
  await r1.checkOrWait(['new']);
  expect(await key.stored()).toMatchObject({ withdrawnEntries: SLACK });
});

test('waiters that are put back are served in the order of all tickets', async () => {
  await r1.checkOrWait(['a']);
  await r2.checkOrWait(['b']);
  await r1.checkOrWait(['c']);
  // This is the state after a failover that lost the place of b.
  await redis.client.hdel(key.names.waiting, 'b');
  await redis.client.hdel(key.names.replicas, 'r2');
  await r2.settle({ b: 2 });
  await r1.checkOrWait(['d']);
  for (const [served, next] of [
    ['first', 'a'],
    ['a', 'b'],
    ['b', 'c'],
    ['c', 'd'],
  ]) {
    await r1.release(served!);
    expect((await key.stored()).requests).toEqual([next]);
  }
});

test.each(['queue', 'waiting', 'replicas'] as const)(
  'if the %s was removed, waiters are put back, and none is lost or counted twice',
  async (removed) => {
    await r1.checkOrWait(['a']);
    await r2.checkOrWait(['b']);
    await key.lose(removed);
    // The first call finds the loss, the second puts the waiter back.
    for (let round = 0; round < 2; round += 1) {
      await r1.settle({ a: 1 });
      await r2.settle({ b: 2 });
    }
    // After the loss of a queue, a recovery hold waits for waiters that are not back yet.
    await key.setTime(600);
    await r1.settle();
    expect((await key.stored()).queue).toEqual([
      ['a@r1', 1],
      ['b@r2', 2],
    ]);
    expect(await r1.inspect()).toMatchObject({ used: 1, waiting: 2 });
  },
);

test('a queue out of order whose state is lost is sorted before it is served', async () => {
  await r1.checkOrWait(['a']);
  await r2.checkOrWait(['b']);
  await redis.client.hdel(key.names.waiting, 'a');
  await redis.client.lpop(key.names.queue);
  await r1.settle({ a: 1 });
  await key.lose('state');
  await r2.check(['newcomer']);
  expect((await key.stored()).requests).toEqual(['a']);
});
