import { ZonedCalendar } from '../../../src/limiter/calendar/zoned-calendar.js';
import type { PeekRequest, RequestStatus } from '../../../src/limiter/limiter.js';
import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import { extent } from '../../support/extent.js';
import { group, lane } from '../../support/instance-in-memory.js';
import { contentsOfKey } from '../../support/key-contents.js';
import fc from '../../support/properties.js';
import {
  TEST_LEASE_MILLIS,
  type TestReplica,
  useScriptHarness,
} from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

describe('a look at a key', () => {
  const limits = {
    maxRequestsInQueue: 2000,
    further: [
      { name: 'ten', windowMillis: 10_000, maximum: 3, counts: 'requests', keepsReleased: false },
    ],
  } as const;
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
      key: key.names.key,
      names: expect.any(Array) as unknown,
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
});

describe('a peek', () => {
  const contents = (): Promise<unknown[]> => contentsOfKey(redis.client, key.names.state);

  /** Peeks, which must leave everything as it is. */
  async function peek(replica: TestReplica, request?: Omit<PeekRequest, 'key'>): Promise<string> {
    const before = await contents();
    const said = await replica.peek(request);
    expect(await contents()).toEqual(before);
    return String(said);
  }

  /** What a check gets that joins the queue only if its turn comes at once. */
  async function check(replica: TestReplica, request: Omit<PeekRequest, 'key'>): Promise<string> {
    const joining = { requestId: 'checked', canWait: true, maxWaitMillis: 0, ...request };
    const [verdict] = await replica.checkBatch([joining]);
    return String(verdict);
  }

  interface Step {
    readonly kind: 'check' | 'wait' | 'withdraw' | 'settle' | 'pause';
    readonly replica: number;
    readonly afterMillis: number;
    readonly hits: number;
    readonly holdMillis: number | undefined;
    /** Of the lists of the scene. */
    readonly list: number;
  }

  /** What the rules of a key say now and then, the first one most often. */
  const GROUPS = [group('x'), group('y', 3)];
  const LISTS: readonly (readonly (QueueList | undefined)[])[] = [
    [undefined],
    [lane('a'), lane('b', 700), lane('c', 30_000)],
    GROUPS,
    GROUPS.map((list) => ({ ...list, hasLimits: true })),
    [lane('a'), lane('b', 700), undefined, lane('a', 900), group('x')],
  ];

  const hits = fc.constantFrom(1, 1, 1, 2, 3);
  const holdMillis = fc.constantFrom(undefined, undefined, undefined, 700, 2500);
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.constantFrom('check', 'check', 'wait', 'wait', 'wait', 'withdraw', 'settle', 'pause'),
    replica: fc.nat({ max: 1 }),
    afterMillis: fc.constantFrom(0, 0, 1, 90, 400, 1000, 1700),
    hits,
    holdMillis,
    list: fc.nat({ max: 4 }),
  });
  const algorithm: fc.Arbitrary<Algorithm> = fc.constantFrom<Algorithm>(
    DEFAULT_ALGORITHM,
    DEFAULT_ALGORITHM,
    { name: 'sliding_window', steps: 5 },
    { name: 'token_bucket', burst: 3 },
  );
  const scene = fc.record({
    algorithm,
    further: algorithm,
    hasFurther: fc.boolean(),
    lanes: fc.constantFrom(undefined, ['a'], ['a', 'b']),
    lists: fc.constantFrom(...LISTS),
    maxRequests: fc.integer({ min: 1, max: 4 }),
    steps: fc.array(step, { maxLength: 12, size: 'max' }),
    /** Also so long that the waiters of silent replicas count no longer, or that the key is idle. */
    afterMillis: fc.constantFrom(
      0,
      1,
      350,
      999,
      1000,
      1001,
      2600,
      4000,
      6000,
      12_000,
      90_000,
      -600,
    ),
    asked: fc.record({ hits, holdMillis, list: fc.nat({ max: 4 }) }),
  });

  test('a peek says what a check gets, also before anybody has served the queue, and writes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(scene, async (drawn) => {
        await key.begin();
        const { maxRequests, hasFurther, further } = drawn;
        const isOfGroups = drawn.lists.some((list) => list?.kind === 'group' && list.hasLimits);
        const second = {
          name: 'second',
          windowMillis: 2500,
          maximum: maxRequests + 2,
          algorithm: further,
          counts: 'hits',
          keepsReleased: true,
          ...(drawn.lanes && !isOfGroups && { lanes: drawn.lanes }),
          ...(isOfGroups && { perGroup: { maxima: new Map([['y', 1]]) } }),
        } as const;
        const listOf = (each: Pick<Step, 'list'>) => drawn.lists[each.list % drawn.lists.length];
        const limits = {
          algorithm: drawn.algorithm,
          maxRequests,
          maxRequestsInQueue: 100,
          ...(hasFurther && { further: [second] }),
        };
        const replicas = [key.replica('r1', { limits }), key.replica('r2', { limits })] as const;
        const withdraw = (i: number): Promise<void> =>
          replicas[drawn.steps[i]!.replica]!.withdraw([`${i}`]);
        let now = 0;
        for (const [i, each] of drawn.steps.entries()) {
          await key.setTimeInSilence((now += each.afterMillis));
          const replica = replicas[each.replica]!;
          // After the clock has gone back, only a script that writes makes holds shorter.
          const holdMillis = drawn.afterMillis < 0 ? undefined : each.holdMillis;
          const terms = { requestId: `${i}`, hits: each.hits, holdMillis, list: listOf(each) };
          if (each.kind === 'withdraw') await withdraw(Math.floor(i / 2));
          else if (each.kind === 'settle') await replica.settle();
          else if (each.kind === 'pause') await replica.pause(i % 2 === 0 ? 0 : 600);
          else await replica.checkBatch([{ ...terms, canWait: each.kind === 'wait' }]);
        }
        await key.setTimeInSilence(now + drawn.afterMillis);
        const asked = { ...drawn.asked, list: listOf(drawn.asked) };
        const said = await peek(replicas[0], asked);
        expect(await check(replicas[0], asked)).toBe(said);
      }),
      { numRuns: extent(100, 400) },
    );
  });

  test('a group that its own limit stops, as nobody has seen yet, is passed', async () => {
    const own = { name: 'tenant', windowMillis: 60_000, maximum: 1, counts: 'hits' } as const;
    const further = [{ ...own, keepsReleased: false, perGroup: { maxima: new Map() } }];
    const replica = key.replica('r1', { limits: { maxRequests: 9, further } });
    const [list, other] = [group('x'), group('y')].map((each) => ({ ...each, hasLimits: true }));
    await replica.checkBatch([{ requestId: 'a', canWait: false, list }]);
    await replica.pause(100);
    await replica.checkBatch([{ requestId: 'b', canWait: true, list }]);
    await key.setTimeInSilence(200);
    // The waiter has the next window of its group.
    expect(await peek(replica, { list })).toBe('turn in 119800 ms');
    expect(await peek(replica, { list: other })).toBe('approved');
  });

  test('while more wait than a call serves, a check is denied', async () => {
    const replica = key.replica('r1', { limits: { maxRequests: 1000, maxRequestsInQueue: 2000 } });
    await replica.checkHits('a', 1000);
    await replica.checkOrWait(Array.from({ length: 501 }, (_, i) => `w${i}`));
    await key.setTime(1000);
    expect(await peek(replica)).toBe('turn in 0 ms');
    await replica.withdraw(['w0']);
    expect(await peek(replica)).toBe('approved');
  });

  test('a key that recovers denies until then', async () => {
    const silent = key.replica('silent', { limits: { windowMillis: 6000, maxRequests: 1 } });
    await silent.check(['a']);
    await silent.checkOrWait(['b']);
    await key.setTime(6000);
    const other = key.replica('other', { limits: { windowMillis: 6000, maxRequests: 1 } });
    expect(await peek(other)).toBe('turn in 6000 ms');
    expect(await check(other, {})).toBe('turn in 6000 ms');
    expect((await key.stored()).state).toMatchObject({ recoveryUntil: 6500 });
  });

  test('a key that has lost its state serves the waiters that another replica has taken over', async () => {
    const [r1, r2] = [key.replica('r1'), key.replica('r2')];
    const named = { requestId: 'named', canWait: true };
    await r1.check(['a', 'b']);
    await r1.checkBatch([{ ...named, number: 1 }]);
    await r2.checkBatch([{ ...named, number: 1 }]);
    await key.lose('state');
    const said = await Promise.all([peek(r1), peek(r1, { hits: 2 })]);
    expect(said).toEqual(['approved', 'turn in 1000 ms']);
    expect(await check(r1, { hits: 2 })).toBe(said[1]);
  });

  test('a replica whose time is out of date brings the windows of its calendars again', async () => {
    const DAY = 24 * 3_600_000;
    await key.begin(Date.UTC(new Date().getUTCFullYear() + 1, 5, 1));
    const limits = {
      algorithm: { name: 'fixed_window', calendar: new ZonedCalendar('day', 'UTC') } as const,
      windowMillis: DAY,
      maxRequests: 1,
    };
    const replica = key.replica('r1', { limits, knownMillis: -9 * DAY });
    expect(await peek(replica)).toBe('approved');
    await replica.check(['a']);
    await key.setTime(DAY - 1);
    expect(await peek(replica)).toBe('turn in 1 ms');
    await key.setTime(DAY);
    expect(await peek(replica)).toBe('approved');
  });

  test('a peek months after the last check knows the month that has begun', async () => {
    const DAY = 24 * 3_600_000;
    await key.begin(Date.UTC(new Date().getUTCFullYear() + 1, 5, 1));
    const algorithm = {
      name: 'fixed_window',
      calendar: new ZonedCalendar('month', 'UTC'),
    } as const;
    const replica = key.replica('r1', {
      limits: { algorithm, windowMillis: 31 * DAY, maxRequests: 0 },
    });
    await replica.check(['a']);
    // The middle of September.
    await key.setTime(106 * DAY);
    expect(await peek(replica)).toBe(`turn in ${16 * DAY} ms`);
  });
});

describe('the status of a request', () => {
  const WINDOW = 60_000;
  /** The first entries, as many as this, are read one by one. */
  const WALKED = 1000;
  const limits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 9000 };
  const APPROVED = { status: 'approved' };
  const r1 = key.replica('r1', { limits });
  const r2 = key.replica('r2', { limits });

  /** Asks for a status, which must leave everything as it is. */
  async function statusOf(replica: TestReplica, id: string): Promise<RequestStatus | undefined> {
    const before = await contentsOfKey(redis.client, key.names.state);
    const status = await replica.status(id);
    expect(await contentsOfKey(redis.client, key.names.state)).toEqual(before);
    return status;
  }

  async function positionOf(id: string): Promise<number | undefined> {
    const status = await statusOf(r1, id);
    return status?.status === 'waiting' ? status.position : undefined;
  }

  /** Lets requests wait whose callers have chosen their ids. */
  async function waitNamed(replica: TestReplica, ...ids: readonly string[]): Promise<void> {
    await replica.checkBatch(
      ids.map((requestId, i) => ({ requestId, number: i + 1, canWait: true })),
    );
  }

  const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `w${i}`);

  test('while a key recovers, all replicas count, and the turn comes after that', async () => {
    const short = { windowMillis: 6000, maxRequests: 1 };
    const silent = key.replica('silent', { limits: short });
    await silent.check(['f1']);
    await waitNamed(silent, 'a', 'b');
    await key.setTime(6000);
    const other = key.replica('other', { limits: short, history: {} });
    await other.check(['x']);
    expect((await key.stored()).state).toMatchObject({ recoveryUntil: 6500 });
    expect(await statusOf(other, 'b')).toEqual({
      status: 'waiting',
      position: 2,
      waitMillis: 6000,
    });
  });

  test('a list that is out of order has places by its tickets', async () => {
    await r1.check(['f1', 'f2']);
    await waitNamed(r1, 'a');
    await key.setTime(10);
    await waitNamed(r2, 'b', 'c');
    // This is the state after a failover that lost the place of a.
    await redis.client.hdel(key.names.records, 'a');
    await redis.client.hdel(key.names.replicas, 'r1');
    await redis.client.lpop(key.names.queue);
    await r1.settle({ 'a#1': 1 });
    expect(await key.queued()).toEqual(['b@r2', 'c@r2', 'a@r1']);
    expect(await Promise.all(['a', 'b', 'c'].map(positionOf))).toEqual([1, 2, 3]);
  });

  describe('in a long queue', () => {
    const named = [0, 1, WALKED, WALKED + 1, 2500, 4999];
    beforeEach(async () => {
      await r1.check(['f1', 'f2']);
      const isNamed = new Set(named.map((i) => `w${i}`));
      await r1.checkBatch(
        ids(5000).map((requestId) => ({
          requestId,
          canWait: true,
          number: isNamed.has(requestId) ? 1 : undefined,
        })),
      );
    });
    const positions = () => Promise.all(named.map((i) => positionOf(`w${i}`)));

    test('every place is exact while nobody has left', async () => {
      expect(await positions()).toEqual(named.map((i) => i + 1));
    });

    test('withdrawn requests do not count among the first 1000, and count behind them', async () => {
      await r1.withdraw(['w2', 'w500', 'w999', 'w1002', 'w2000']);
      const expected = [1, 2, WALKED - 2, WALKED - 1, 2498, 4997];
      expect(await positions()).toEqual(expected);
      const together = await r1.statuses(named.map((i) => `w${i}`));
      expect(together).toMatchObject(expected.map((position) => ({ status: 'waiting', position })));
    });
  });

  describe('an approval', () => {
    test('that is held is not held for longer after the clock has gone back', async () => {
      await r1.checkHold('a', 5000);
      await key.setTimeInSilence(-60_000);
      expect(await statusOf(r1, 'a')).toEqual({ ...APPROVED, holdMillis: 5000 });
    });
  });
});
