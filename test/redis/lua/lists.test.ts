import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { BatchedCheck } from '../../../src/redis/scripts/check-codec.js';
import { type TestReplica, useScriptHarness } from '../../support/script-harness.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

/** One request for each window. */
const ONE = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 100 };
const lane = (name: string, headStartMillis = 0): QueueList => ({
  kind: 'lane',
  name,
  headStartMillis,
});
const INTERACTIVE = lane('interactive', 30_000);
const BATCH = lane('batch');
const group = (name: string, weight = 1, maxRequests?: number): QueueList => ({
  kind: 'group',
  name,
  weight,
  maxRequests,
});
const [A, B, C] = [group('a'), group('b'), group('c')];

async function wait(
  replica: TestReplica,
  requestId: string,
  list?: QueueList,
  more: Partial<BatchedCheck> = {},
) {
  const [verdict] = await replica.checkBatch([{ requestId, canWait: true, list, ...more }]);
  return verdict;
}

/** The waiters served in windows from this one on, in their order, until a window serves none. */
async function servedFrom(replica: TestReplica, window: number): Promise<string[]> {
  const served: string[] = [];
  for (let i = window; ; i += 1) {
    await key.setTime(i * 1000);
    const { granted } = await replica.settle();
    if (granted.length === 0) return served;
    served.push(...granted);
  }
}

const heads = async (kind: QueueList['kind']) =>
  redis.client.zrange(key.names.headsOf(kind), '0', '-1', 'WITHSCORES');
const listsField = () => redis.client.hget(key.names.state, 'lists');

describe('lanes', () => {
  test('are served by arrival less head start, and each in the order of arrival', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    for (const id of ['b1', 'b2', 'b3']) await wait(replica, id, BATCH);
    await key.setTime(500);
    for (const id of ['i1', 'i2']) await wait(replica, id, INTERACTIVE);
    const { queue, replicas } = await key.stored();
    expect(queue.map(([waiter]) => waiter)).toEqual(
      ['b1', 'b2', 'b3', 'i1', 'i2'].map((id) => `${id}@r1`),
    );
    expect(Object.keys(replicas)).toEqual(['r1']);
    expect(await servedFrom(replica, 1)).toEqual(['i1', 'i2', 'b1', 'b2', 'b3']);
    expect([await heads('lane'), await listsField()]).toEqual([[], '0']);
  });

  test('nobody is overtaken by somebody who came later than the head start', async () => {
    const limits = { ...ONE, windowMillis: 100_000 };
    const replica = key.replica('r1', { limits, leaseMillis: 200_000 });
    await replica.check(['first']);
    await wait(replica, 'b', BATCH);
    await key.setTime(29_999);
    await wait(replica, 'early', INTERACTIVE);
    await key.setTime(30_001);
    await wait(replica, 'late', INTERACTIVE);
    const served = [];
    for (const at of [100_000, 200_000, 300_000]) {
      await key.setTime(at);
      served.push(...(await replica.settle()).granted);
    }
    expect(served).toEqual(['early', 'b', 'late']);
  });

  test('a newcomer that would be the next head is approved at once, and does not wait for one who needs more', async () => {
    const replica = key.replica('r1', { limits: { ...ONE, maxRequests: 3 } });
    await replica.check(['a']);
    await wait(replica, 'large', BATCH, { hits: 3 });
    expect(await replica.peek({ list: INTERACTIVE })).toBe('approved');
    expect(await replica.peek({ list: BATCH })).toBe('turn in 1000 ms');
    const small = { canWait: false, list: BATCH };
    expect(await replica.checkBatch([{ requestId: 'x', ...small }])).toEqual(['denied']);
    expect(await replica.checkBatch([{ requestId: 'y', ...small, list: INTERACTIVE }])).toEqual([
      'approved',
    ]);
    expect(await wait(replica, 'z', INTERACTIVE)).toBe('approved');
    expect(await wait(replica, 'full', INTERACTIVE)).toEqual(expect.any(Number));
    expect(await servedFrom(replica, 1)).toEqual(['full', 'large']);
  });

  test('a newcomer of a lane in which somebody waits joins it', async () => {
    const replica = key.replica('r1', { limits: { ...ONE, maxRequests: 3 } });
    await replica.check(['a']);
    await wait(replica, 'large', INTERACTIVE, { hits: 3 });
    expect(await wait(replica, 'small', INTERACTIVE)).toEqual(expect.any(Number));
    expect(await wait(replica, 'batch', BATCH)).toEqual(expect.any(Number));
    expect(await servedFrom(replica, 1)).toEqual(['large', 'small', 'batch']);
  });

  test('withdrawn heads leave at once', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    for (const id of ['b1', 'b2']) await wait(replica, id, BATCH);
    for (const id of ['i1', 'i2', 'i3']) await wait(replica, id, INTERACTIVE);
    await replica.withdraw(['i1', 'b1', 'i3']);
    expect(await redis.client.zcard(key.names.queue)).toBe(2);
    expect(await servedFrom(replica, 1)).toEqual(['i2', 'b2']);
  });

  test('their waiters are skipped if the replica is dead', async () => {
    const limits = { ...ONE, windowMillis: 100_000 };
    const [alive, dead] = [key.replica('r1', { limits }), key.replica('r2', { limits })];
    await alive.check(['first']);
    await wait(dead, 'i1', INTERACTIVE);
    await wait(alive, 'b1', BATCH);
    await key.setTime(3000);
    await alive.settle();
    await key.setTime(5500);
    await alive.release('first');
    expect(await alive.inspect()).toMatchObject({ used: 1, waiting: 0 });
    expect(await redis.client.zcard(key.names.queue)).toBe(0);
  });
});

describe('groups', () => {
  test('take turns, and each is served in the order of arrival', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    for (const id of ['a1', 'a2', 'a3', 'a4']) await wait(replica, id, A);
    for (const id of ['b1', 'b2']) await wait(replica, id, B);
    await wait(replica, 'none', group(''));
    expect(await servedFrom(replica, 1)).toEqual(['a1', 'b1', 'none', 'a2', 'b2', 'a3', 'a4']);
    expect([await heads('group'), await listsField()]).toEqual([[], '0']);
  });

  test('get shares by weight and hits', async () => {
    const limits = { ...ONE, maxRequests: 4 };
    const replica = key.replica('r1', { limits });
    await replica.checkHits('first', 4);
    const gold = group('gold', 4);
    for (let i = 1; i <= 8; i += 1) await wait(replica, `g${i}`, gold, { hits: 4 });
    for (let i = 1; i <= 2; i += 1) await wait(replica, `s${i}`, A, { hits: 4 });
    expect(await servedFrom(replica, 1)).toEqual([
      ...['g1', 'g2', 'g3', 'g4', 's1'],
      ...['g5', 'g6', 'g7', 'g8', 's2'],
    ]);
  });

  test('do not pay for those who have left', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    const ids = Array.from({ length: 20 }, (_, i) => `a${i}`);
    for (const id of ids) await wait(replica, id, A);
    for (const id of ['b1', 'b2', 'b3']) await wait(replica, id, B);
    await replica.withdraw(ids.slice(0, -1));
    expect(await servedFrom(replica, 1)).toEqual(['a19', 'b1', 'b2', 'b3']);
  });

  test('that come back take their turn after those who wait', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    await wait(replica, 'a1', A, { hits: 1 });
    for (const id of ['b1', 'b2', 'b3']) await wait(replica, id, B);
    await key.setTime(1000);
    expect((await replica.settle()).granted).toEqual(['a1']);
    await wait(replica, 'a2', A);
    expect(await servedFrom(replica, 2)).toEqual(['b1', 'b2', 'a2', 'b3']);
  });

  test('that come once do not starve one that waits', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    for (const id of ['a1', 'a2', 'a3']) await wait(replica, id, A);
    const served = [];
    for (let i = 1; i <= 6; i += 1) {
      await wait(replica, `once${i}`, group(`once${i}`));
      await key.setTime(i * 1000);
      served.push(...(await replica.settle()).granted);
    }
    expect(served.filter((id) => id.startsWith('a'))).toEqual(['a1', 'a2', 'a3']);
  });

  test('have places of their own', async () => {
    const [replica, dead] = [
      key.replica('r1', { limits: ONE }),
      key.replica('r2', { limits: ONE }),
    ];
    const of = (name: string) => group(name, 1, 2);
    await replica.check(['first']);
    await wait(dead, 'd', of('a'));
    await wait(replica, 'a1', of('a'));
    expect(await wait(replica, 'a2', of('a'))).toBe('queue full of group');
    expect(await wait(replica, 'b1', of('b'))).toEqual(expect.any(Number));
    for (const at of [2000, 4000]) {
      await key.setTime(at);
      await replica.pause(10_000);
      await replica.renew(2);
      await replica.settle();
    }
    await key.setTime(5001);
    expect(await wait(replica, 'a2', of('a'))).toEqual(expect.any(Number));
    expect(await wait(replica, 'a3', of('a'))).toBe('queue full of group');
  });
});

describe('other rules', () => {
  test('leave everybody in place: who came by the rules before is served first', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    for (const id of ['f1', 'f2']) await wait(replica, id);
    await replica.withdraw(['f1']);
    await wait(replica, 'f3');
    await wait(replica, 'a1', A);
    await wait(replica, 'i1', INTERACTIVE);
    await wait(replica, 'a2', A);
    await wait(replica, 'f4');
    expect(await listsField()).toBe('fifo,group,lane');
    expect(await servedFrom(replica, 1)).toEqual(['f2', 'f3', 'f4', 'a1', 'a2', 'i1']);
    await wait(replica, 'f5');
    expect(await redis.client.type(key.names.queue)).toBe('none');
  });
});

describe('after a loss', () => {
  test('of the key, waiters go on in their lists', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    const tickets: Record<string, number> = {};
    const lists: Record<string, QueueList> = { b1: BATCH, b2: BATCH, i1: INTERACTIVE };
    for (const [id, list] of Object.entries(lists)) {
      tickets[id] = (await wait(replica, id, list)) as number;
    }
    await key.lose();
    await redis.client.del(key.names.headsOf('lane'));
    await key.setTime(100);
    const terms = Object.fromEntries(Object.entries(lists).map(([id, list]) => [id, { list }]));
    await replica.settle(tickets, 900, '', terms);
    expect(await servedFrom(replica, 1)).toEqual(['i1', 'b1', 'b2']);
  });

  test.each(['state', 'heads', 'both'] as const)('of %s, the queue is repaired', async (lost) => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    const tickets: Record<string, number> = {};
    const lists: Record<string, QueueList> = { a1: A, a2: A, a3: A, b1: B, b2: B };
    for (const [id, list] of Object.entries(lists)) {
      tickets[id] = (await wait(replica, id, list)) as number;
    }
    const terms = Object.fromEntries(Object.entries(lists).map(([id, list]) => [id, { list }]));
    if (lost !== 'heads') await key.lose('state');
    if (lost !== 'state') await redis.client.del(key.names.headsOf('group'));
    await key.setTime(100);
    await replica.settle(tickets, 900, '', terms);
    const served = [];
    for (let i = 1; i <= 8; i += 1) {
      await key.setTime(i * 1000 + 200);
      served.push(...(await replica.settle()).granted);
    }
    expect(served).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
  });

  test.each([
    [['state', 'waiting']],
    [['state', 'replicas']],
    [['state', 'waiting', 'replicas']],
    [['waiting', 'replicas']],
    [['queue']],
  ] as const)('of %j, waiters are put back into their lists', async (lost) => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    const lists: Record<string, QueueList> = { b1: BATCH, i1: INTERACTIVE };
    const tickets: Record<string, number> = {};
    for (const [id, list] of Object.entries(lists)) {
      tickets[id] = (await wait(replica, id, list)) as number;
    }
    await key.lose(...lost);
    await key.setTime(100);
    const terms = Object.fromEntries(Object.entries(lists).map(([id, list]) => [id, { list }]));
    await replica.settle(tickets, 900, '', terms);
    const served = [];
    for (let i = 1; i <= 4; i += 1) {
      await key.setTime(i * 1000 + 200);
      served.push(...(await replica.settle()).granted);
    }
    expect(served).toEqual(['i1', 'b1']);
  });

  test('of the state, a peek finds the lists', async () => {
    const replica = key.replica('r1', { limits: { ...ONE, maxRequests: 2 } });
    await replica.checkHits('first', 2);
    await wait(replica, 'i1', INTERACTIVE);
    await wait(replica, 'large', BATCH, { hits: 2 });
    await key.lose('state');
    expect(await replica.peek({ list: BATCH })).toBe('turn in 1000 ms');
    expect(await replica.peek({ list: INTERACTIVE })).toBe('approved');
    expect(await wait(replica, 'i2', INTERACTIVE)).toBe('approved');
  });
});

test('a check looks once for the names of lists and once for those of holders', async () => {
  const replica = key.replica('r1', { limits: ONE });
  await replica.check(['first']);
  await wait(replica, 'b1', BATCH, { holdMillis: 60_000, holder: 'a' });
  await redis.client.config('RESETSTAT');
  await wait(replica, 'b2', BATCH, { holdMillis: 60_000, holder: 'b' });
  const stats = await redis.client.info('commandstats');
  expect(/^cmdstat_exists:calls=(\d+)/m.exec(stats)?.[1]).toBe('2');
});

test('lists are shown, the longest first', async () => {
  const replica = key.replica('r1', { limits: ONE });
  await replica.check(['first']);
  expect(await replica.examine()).not.toHaveProperty('lists');
  for (const list of [B, A, A, group('ä:/ b')]) await wait(replica, uniqueKey(), list);
  await key.setTime(250);
  await wait(replica, 'lane', INTERACTIVE);
  expect(await replica.examine()).toMatchObject({
    listCount: 4,
    lists: [
      { kind: 'group', name: 'a', waiting: 2, oldestMillis: 250 },
      { kind: 'group', name: 'b', waiting: 1, oldestMillis: 250 },
      { kind: 'group', name: 'ä:/ b', waiting: 1, oldestMillis: 250 },
      { kind: 'lane', name: 'interactive', waiting: 1, oldestMillis: 0 },
    ],
  });
});

test('a request that waits says its position in its list', async () => {
  const replica = key.replica('r1', { limits: ONE });
  await replica.check(['first']);
  for (const [i, list] of [A, A, B, C, A].entries()) {
    await wait(replica, `n${i}`, list, { number: i + 1, keepMillis: 5000 });
  }
  const positions = await replica.statuses(['n0', 'n1', 'n2', 'n4']);
  expect(positions).toEqual([
    { status: 'waiting', position: 1, waitMillis: 1000 },
    { status: 'waiting', position: 2, waitMillis: 2000 },
    { status: 'waiting', position: 1, waitMillis: 1000 },
    { status: 'waiting', position: 3, waitMillis: 3000 },
  ]);
});
