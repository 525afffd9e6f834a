import type { QueueList } from '../../../src/limiter/queue-order.js';
import { elementsRead } from '../../support/elements-read.js';
import {
  type TestCheck,
  type TestReplica,
  type Verdict,
  useScriptHarness,
} from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';

const redis = useRedis();
const key = useScriptHarness(redis);
const recordWakes = useWakeRecorder(redis);

describe('the list of a queue', () => {
  const limits = { windowMillis: 60_000, maxRequests: 1, maxRequestsInQueue: 1000 };
  /** A list is not compacted for fewer entries than this. */
  const SLACK = 100;
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
    expect(await redis.client.hgetall(key.names.records)).toEqual({
      a: `{"state":"waiting","ticket":"${ticket(1)}"}`,
      b: `{"state":"waiting","ticket":"${ticket(2)}"}`,
    });
    const leaseEnds = key.startMillis + 5000;
    expect(await redis.client.hgetall(key.names.replicas)).toEqual({
      r1: `${leaseEnds}:1`,
      r2: `${leaseEnds}:1`,
    });
  });

  test('an entry that is there twice has its turn once', async () => {
    await r1.checkOrWait(['a', 'b']);
    const [first = ''] = await redis.client.lrange(key.names.queue, 0, 0);
    await redis.client.rpush(key.names.queue, first);
    const wakes = await recordWakes(key.names.wakeChannel);
    await r1.check(['c'], { maxRequests: 4 });
    const told = (await wakes.take()).map((text) => JSON.parse(text) as { granted: string[] });
    expect(told.flatMap(({ granted }) => granted)).toEqual(['a', 'b']);
  });

  test('more withdrawn entries than are read at once are passed over in one call', async () => {
    await r1.checkOrWait(ids(350));
    await r1.withdraw(ids(349));
    await r1.release('first');
    expect(await key.stored()).toMatchObject({
      requests: ['w349'],
      queue: [],
      withdrawnEntries: 0,
    });
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

  test('a queue out of order whose state is lost is sorted before it is served', async () => {
    await r1.checkOrWait(['a']);
    await r2.checkOrWait(['b']);
    await redis.client.hdel(key.names.records, 'a');
    await redis.client.lpop(key.names.queue);
    await r1.settle({ a: 1 });
    await key.lose('state');
    await r2.check(['newcomer']);
    expect((await key.stored()).requests).toEqual(['a']);
  });
});

describe('large queues', () => {
  /** More values than Lua can unpack, since its C stack takes 8000. */
  const MANY = 9000;
  const waiters = Array.from({ length: MANY }, (_, i) => `w${String(i).padStart(4, '0')}`);
  const limits = { windowMillis: 60_000, maxRequests: 1, maxRequestsInQueue: MANY };
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

  test('9000 waiters of a dead replica take no place from living replicas', async () => {
    await fill();
    await key.setTime(5000);
    const other = key.replica('r2', { limits, history: { since: 0 } });
    expect(await other.checkOrWait(['new'])).toEqual([5_000_000]);
    expect(await other.inspect()).toMatchObject({ used: 1, waiting: 1 });
  });

  test('waiters of replicas that die one after the other do not accumulate behind one that lives', async () => {
    const most = { ...limits, maxRequestsInQueue: 101 };
    const living = key.replica('living', { limits: most });
    await living.check(['first']);
    await living.checkOrWait(['patient']);
    const hundred = (round: number): string[] =>
      waiters.slice(0, 100).map((id) => `${id}-${round}`);
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
    await key.lose('queue', 'records', 'replicas');
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
    expect(
      await elementsRead(redis.client, key.names.state, () => replica.examine(0)),
    ).toBeLessThan(10);
    const list = { kind: 'lane', name: 'batch', headStartMillis: 0 } as const;
    await replica.checkBatch([{ requestId: 'lane', canWait: true, list }], {
      maxRequestsInQueue: MANY + 1,
    });
    expect(
      await elementsRead(redis.client, key.names.state, () => replica.examine(0)),
    ).toBeLessThan(10);
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
});

describe('a queue that is served in parts', () => {
  const replica = key.replica('r1');

  const wait = (requestId: string, maxWaitMillis?: number) => ({
    requestId,
    canWait: true,
    maxWaitMillis,
  });

  test.each<[string, number, Verdict]>([
    ['comes at once if the window has room for all earlier waiters', 1301, 1_000_000],
    ['comes with the next window if not', 1100, 'turn in 1000 ms'],
  ])('while the queue is served in parts, a turn %s', async (_what, maxRequests, verdict) => {
    await replica.check(['a', 'b'], { maxRequests: 2, maxRequestsInQueue: 2000 });
    await key.setTime(1);
    await replica.checkOrWait(Array.from({ length: 1200 }, (_, i) => `w${i}`));
    await key.setTime(1000);
    // Each call serves 500.
    await replica.check(['c'], { maxRequests });
    const [reply] = await replica.checkBatch([wait('x', 0)]);
    expect(await key.stored()).toMatchObject({ state: { approved: 1000, isServing: true } });
    expect(reply).toBe(verdict);
  });
});

describe('queues of several lists', () => {
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
  const [A, B] = [group('a'), group('b')];

  async function wait(
    replica: TestReplica,
    requestId: string,
    list?: QueueList,
    more: Partial<TestCheck> = {},
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

  const listsField = async () => (await key.optionalFields()).lists;

  describe('groups', () => {
    test('leave no virtual time behind, and have one as long as somebody of them waits', async () => {
      const virtualTime = async () => (await key.optionalFields()).virtual_time;
      const replica = key.replica('r1', { limits: ONE });
      await replica.check(['first']);
      await wait(replica, 'a1', A);
      await wait(replica, 'a2', A);
      await wait(replica, 'i1', INTERACTIVE);
      await replica.withdraw(['i1']);
      await key.setTime(1000);
      await replica.settle();
      expect(await virtualTime()).toBe(1);
      expect(await servedFrom(replica, 2)).toEqual(['a2']);
      expect(await virtualTime()).toBeUndefined();
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
      expect(await listsField()).toEqual(['fifo', 'group', 'lane']);
      expect(await servedFrom(replica, 1)).toEqual(['f2', 'f3', 'f4', 'a1', 'a2', 'i1']);
      await wait(replica, 'f5');
      expect(await redis.client.type(key.names.queue)).toBe('none');
    });
  });

  describe('after a loss', () => {
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

    test('of all but the heads, those who wait again are served once', async () => {
      const replica = key.replica('r1', { limits: { ...ONE, maxRequests: 9 } });
      await replica.checkHits('first', 9);
      const a = (await wait(replica, 'a', A)) as number;
      await wait(replica, 'b1', B);
      await key.lose('queue', 'replicas', 'records');
      await replica.settle({ a }, 900, '', { a: { list: A } });
      await wait(replica, 'b2', B);
      await key.setTime(1000);
      expect((await replica.settle()).granted).toEqual(['a', 'b2']);
    });

    test('of one place, its waiter holds nobody up', async () => {
      const replica = key.replica('r1', { limits: ONE });
      await replica.check(['first']);
      await replica.checkOrWait(['a', 'b']);
      await redis.client.lpop(key.names.queue);
      const places = await redis.client.hget(key.names.replicas, 'r1');
      await redis.client.hset(key.names.replicas, 'r1', places!.replace(/:2$/, ':1'));
      await replica.checkOrWait(['c']);
      expect(await servedFrom(replica, 1)).toEqual(['b', 'c']);
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

  test('of more lists than are shown, the longest are', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    for (let i = 0; i < 20; i += 1) await wait(replica, uniqueKey(), group(`${i}`));
    for (let i = 0; i < 2; i += 1) await wait(replica, uniqueKey(), group('long'));
    const { lists } = (await replica.examine())!;
    expect(lists).toHaveLength(20);
    expect(lists![0]).toMatchObject({ name: 'long', waiting: 2 });
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

  test('a kind of lists ends when its last waiter leaves', async () => {
    const replica = key.replica('r1', { limits: ONE });
    await replica.check(['first']);
    await wait(replica, 'in a lane', INTERACTIVE);
    await wait(replica, 'in a group', A);
    await replica.withdraw(['in a lane']);
    expect((await key.optionalFields()).lists).toEqual(['group']);
  });

  test('of many lists a look counts a few, among them all with a fiftieth of the waiters', async () => {
    const MANY = 150;
    const replica = key.replica('r1', { limits: { ...ONE, maxRequestsInQueue: 1000 } });
    await replica.check(['first']);
    const groups = Array.from({ length: MANY }, (_, i) => group(`g${i}`));
    const long = groups.at(-1);
    await replica.checkBatch(
      [...groups, long, long, long, long].map((list) => ({
        requestId: uniqueKey(),
        canWait: true,
        list,
      })),
    );
    await redis.client.config('RESETSTAT');
    const shown = await replica.examine();
    const [, counted] = /cmdstat_zlexcount:calls=(\d+)/.exec(
      await redis.client.info('commandstats'),
    )!;

    expect(Number(counted)).toBeLessThanOrEqual(50);
    expect([shown?.listCount, shown?.lists?.length]).toEqual([MANY, 20]);
    expect(shown?.lists?.[0]).toMatchObject({ name: 'g149', waiting: 5 });
  });

  test('waiters of dead replicas count in no list, in no position, in no bound, and before no newcomer', async () => {
    const limits = { ...ONE, windowMillis: 60_000 };
    const living = key.replica('r1', { limits, history: { since: 0 } });
    const dead = key.replica('r2', { limits });
    await living.check(['first']);
    for (const list of [A, A, B, INTERACTIVE]) await wait(dead, uniqueKey(), list);
    // A kept place outlives its replica, but not its longest wait.
    await wait(dead, 'kept', A, { number: 1, keepMillis: 60_000 });
    await wait(dead, 'kept', A, { number: 2, keepMillis: 60_000, maxWaitMillis: 1000 });
    await key.setTime(1000);
    await wait(living, 'a1', A, { number: 1 });
    await wait(living, 'a2', A, { number: 1 });
    await wait(living, 'lane', INTERACTIVE, { number: 1 });
    const shown = (waiting: readonly number[], positions: readonly number[]) => [
      waiting,
      positions.map((position) => expect.objectContaining({ position }) as unknown),
    ];
    const look = async () => {
      const { lists = [], listCount } = (await living.examine())!;
      expect(listCount).toBe(lists.length);
      const statuses = await living.statuses(['a1', 'a2', 'lane']);
      return [lists.map(({ waiting }) => waiting), statuses];
    };

    expect(await look()).toEqual(shown([5, 2, 1], [4, 5, 2]));
    await key.setTime(5000);
    expect(await look()).toEqual(shown([2, 1], [1, 2, 1]));
    expect((await living.examine())?.lists?.map(({ oldestMillis }) => oldestMillis)).toEqual([
      4000, 4000,
    ]);
    const check = { requestId: 'c', canWait: true, maxWaitMillis: 1, list: A };
    expect(await living.peek({ list: A })).toBe('turn in 175000 ms');
    expect(await living.checkBatch([check])).toEqual(['turn in 175000 ms']);
    await redis.client.config('RESETSTAT');
    await living.checkBatch(
      Array.from({ length: 50 }, (_, i) => ({ ...check, requestId: `c${i}` })),
    );
    const [, read] = /cmdstat_zrange:calls=(\d+)/.exec(await redis.client.info('commandstats'))!;
    expect(Number(read)).toBeLessThan(10);
    // They leave their places in their group to those who come.
    const last = { requestId: 'last', canWait: true, list: { ...A, maxRequests: 4 } };
    expect(await living.checkBatch([last])).toEqual([expect.any(Number)]);
  });
});
