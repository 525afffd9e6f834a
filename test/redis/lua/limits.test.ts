import type { CalendarUnit } from '../../../src/limiter/calendar/calendar.js';
import { ZonedCalendar } from '../../../src/limiter/calendar/zoned-calendar.js';
import { type Algorithm, DEFAULT_ALGORITHM } from '../../../src/limiter/kinds/kinds.js';
import type { FurtherLimit } from '../../support/limits.js';
import {
  type ReplicaOptions,
  ScriptHarness,
  type TestReplica,
  useScriptHarness,
} from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';
import { whileFull } from '../../support/while-full.js';

const redis = useRedis();
const key = useScriptHarness(redis);
const recordWakes = useWakeRecorder(redis);

describe('algorithms', () => {
  const SLIDING: Algorithm = { name: 'sliding_window', steps: 10 };

  function bucket(burst: number): Algorithm {
    return { name: 'token_bucket', burst };
  }

  function withOwn(
    algorithm: Algorithm,
    maxRequests: number,
    { limits, ...options }: ReplicaOptions = {},
  ): TestReplica {
    const all = { algorithm, maxRequests, maxRequestsInQueue: 20, ...limits };
    return key.replica('r1', { ...options, limits: all });
  }

  /** The ids of a limit, by generation. */
  function idsOf(name?: string): Promise<Record<string, string>[]> {
    const names = [key.names.took(0, name), key.names.took(1, name)];
    return Promise.all(names.map((each) => redis.client.hgetall(each)));
  }

  /** What counts of each limit, to all digits. */
  function counts(): Promise<(string | null)[]> {
    return redis.client.hmget(key.names.state, 'own', 'extra', 'approved');
  }

  const micros = (millis: number): string => String((key.startMillis + millis) * 1000);

  test('a token bucket drains by microseconds, however many calls a millisecond has', async () => {
    const replica = withOwn(bucket(1000), 1_000_000, { limits: { windowMillis: 1000 } });
    await key.setTime(5.4);
    await replica.checkHits('a', 1000);
    await key.setTime(5.5);
    expect(await replica.checkHits('b', 101)).toBe('denied');
    expect(await replica.checkHits('c', 100)).toBe('approved');
    await key.setTime(5.9);
    expect(await replica.checkHits('d', 401)).toBe('denied');
    expect(await replica.checkHits('e', 400)).toBe('approved');
  });

  describe('ids', () => {
    test('of a sliding window are kept with their steps, and go away with their generation', async () => {
      const replica = withOwn(SLIDING, 9);
      await replica.check(['a']);
      await key.setTime(1099);
      await replica.checkHits('b', 2);
      expect(await idsOf()).toEqual([{ a: '0', b: '[10,2]' }, {}]);
      await key.setTime(1100);
      await replica.check(['c']);
      expect(await idsOf()).toEqual([{ a: '0', b: '[10,2]' }, { c: '11' }]);
      await key.setTime(2200);
      await replica.inspect();
      await replica.check(['d']);
      expect(await idsOf()).toEqual([{ d: '22' }, { c: '11' }]);
      await key.setTime(5000);
      await replica.check(['e']);
      expect(await idsOf()).toEqual([{ e: '50' }, {}]);
    });

    test('of a token bucket are kept with their times, and go away with their generation', async () => {
      const replica = withOwn(bucket(5), 9);
      await replica.check(['a']);
      await key.setTime(999);
      await replica.checkHits('b', 2);
      expect(await idsOf()).toEqual([{ a: micros(0), b: `[${micros(999)},2]` }, {}]);
      await key.setTime(1000);
      await replica.check(['c']);
      expect(await idsOf()).toEqual([
        { a: micros(0), b: `[${micros(999)},2]` },
        { c: micros(1000) },
      ]);
      await key.setTime(2000);
      await replica.check(['d']);
      expect(await idsOf()).toEqual([{ d: micros(2000) }, { c: micros(1000) }]);
    });

    test('of a token bucket are remembered after their period, also if they take nothing', async () => {
      const replica = withOwn(bucket(9), 9, { leaseMillis: 1000 });
      await replica.check(['a']);
      await replica.amend('a', 0);
      await key.setTime(1000);
      await replica.check(['b']);
      expect(await key.stored()).toMatchObject({ requests: ['b'], pastRequests: ['a'] });
    });

    test.each<[what: string, algorithm: Algorithm]>([
      ['a sliding window', SLIDING],
      ['a token bucket', bucket(9)],
    ])('of %s that Redis has evicted expire when the next approval makes them', async (_, each) => {
      const replica = withOwn(each, 9);
      await replica.check(['a']);
      const before = await key.expiry();
      await key.lose('requests');
      await redis.client.del(key.names.took(0), key.names.took(1));
      // All of a bucket has drained, so that no more counts than before.
      await key.setTime(500);
      expect(await replica.check(['b'])).toEqual(['approved']);
      const { took, ...others } = await key.expiry();
      expect({ ...others, took: took! >= before.took! }).toEqual({ ...before, took: true });
    });

    test.each<[what: string, algorithm: Algorithm]>([
      ['a sliding window', SLIDING],
      ['a token bucket', bucket(2)],
    ])(
      'of a further limit that is %s are under its name, which expires',
      async (_what, algorithm) => {
        const further: FurtherLimit[] = [
          {
            name: 'minute',
            windowMillis: 60_000,
            maximum: 5,
            algorithm,
            counts: 'hits',
            keepsReleased: false,
          },
        ];
        const replica = key.replica('r1', { limits: { maxRequests: 9, further } });
        await replica.check(['a']);
        expect((await idsOf('minute')).map((ids) => Object.keys(ids))).toEqual([['a'], []]);
        const [expiresAt] = await key.recentExpiry('minute');
        expect(expiresAt).toBeGreaterThanOrEqual(120_000);
        await replica.release('a');
        expect(await idsOf('minute')).toEqual([{}, {}]);
      },
    );

    test('that a lost state has left count in no further limit', async () => {
      const further: FurtherLimit[] = [
        { name: 'minute', windowMillis: 60_000, maximum: 5, counts: 'hits', keepsReleased: false },
      ];
      const replica = key.replica('r1', { limits: { maxRequests: 9, further } });
      await replica.check(['a']);
      await key.lose('state');
      await replica.check(['b']);
      expect(await replica.release('a')).toBe(false);
      expect((await replica.inspect())!.limits).toMatchObject([{ used: 1 }, { used: 1 }]);
    });

    test('that a lost state has left do not come back with other rules', async () => {
      await withOwn(bucket(5), 9).check(['a']);
      await key.setTime(1000);
      await withOwn(bucket(5), 9).check(['b']);
      await key.lose('state');
      await withOwn(DEFAULT_ALGORITHM, 9).check(['c']);
      await key.setTime(2000);
      await withOwn(bucket(5), 9).check(['d']);
      expect(await idsOf()).toEqual([{ d: micros(2000) }, {}]);
    });

    test('of a bucket with another window expire after that', async () => {
      await withOwn(bucket(5), 9).check(['a']);
      const longer = withOwn(bucket(5), 9, { limits: { windowMillis: 60_000 } });
      await longer.check(['b']);
      expect(await idsOf()).toEqual([{ a: micros(0), b: micros(0) }, {}]);
      expect((await key.recentExpiry(undefined))[0]).toBeGreaterThanOrEqual(120_000);
    });
  });

  test('a lost sliding window has room when it had, also after a whole window', async () => {
    const replica = withOwn(SLIDING, 1);
    await replica.check(['a']);
    const [ticket] = await replica.checkOrWait(['b']);
    await key.setTime(10);
    await key.lose();
    await replica.settle({ b: Number(ticket) }, 1090);
    await key.setTime(1099);
    expect((await replica.settle()).granted).toEqual([]);
    await key.setTime(1100);
    expect((await replica.settle()).granted).toEqual(['b']);
  });

  describe.each<[what: string, algorithm: Algorithm]>([
    ['a sliding window', SLIDING],
    ['a token bucket', bucket(9)],
  ])('a check of %s that is sent again', (_what, algorithm) => {
    const further: FurtherLimit[] = [
      {
        name: 'a',
        windowMillis: 3000,
        maximum: 9,
        algorithm,
        counts: 'hits',
        keepsReleased: false,
      },
    ];
    const limits = { further };
    const replica = withOwn(algorithm, 9, { limits });
    const again = withOwn(algorithm, 9, { limits, guard: sentAgain });

    test.each([0, 600])('counts its id once, %i ms later', async (millis) => {
      await replica.checkHits('a', 3);
      await key.setTime(millis);
      await replica.check(['b']);
      const before = await counts();
      expect(await again.checkHits('a', 3)).toBe('approved');
      expect(await counts()).toEqual(before);
    });

    test('takes nothing after its release', async () => {
      await replica.checkHits('a', 3);
      expect(await again.release('a')).toBe(true);
      const before = await counts();
      expect(before.at(-1)).toBe('0');
      expect(await again.release('a')).toBe(false);
      expect(await again.checkHits('a', 3)).toBe('approved');
      expect(await counts()).toEqual(before);
    });
  });
});

describe('further limits', () => {
  const TEN: FurtherLimit = {
    name: 'ten',
    windowMillis: 10_000,
    maximum: 3,
    counts: 'requests',
    keepsReleased: false,
  };
  const TOKENS: FurtherLimit = { ...TEN, name: 'tokens', maximum: 50, counts: 'hits' };
  const OWN = { maxRequests: 20 };
  const replica = withFurther([TEN, TOKENS]);

  function withFurther(further: FurtherLimit[], options: ReplicaOptions = {}): TestReplica {
    return key.replica('r1', { ...options, limits: { ...OWN, ...options.limits, further } });
  }

  /** What each approval takes of a limit, by its id. */
  function idsOf({ name }: FurtherLimit): Promise<Record<string, string>> {
    return redis.client.hgetall(key.names.took(0, name));
  }

  async function expiryOf({ name }: FurtherLimit): Promise<number> {
    return (await redis.client.pexpiretime(key.names.took(0, name))) - key.startMillis;
  }

  /** What is stored of each limit, with times after the start. */
  async function used(): Promise<Record<string, [start: number, taken: number]>> {
    const { further = {} } = await key.optionalFields();
    return Object.fromEntries(
      Object.entries(further).map(([name, limit]) => [
        name,
        [limit.start - key.startMillis, limit.used],
      ]),
    );
  }

  describe('an approval', () => {
    test('is stored with what it takes of each, under names that expire after their windows', async () => {
      expect(await replica.checkHits('a', 7)).toBe('approved');
      await key.setTime(500);
      expect(await replica.check(['b'])).toEqual(['approved']);
      expect(await idsOf(TEN)).toEqual({ a: '1', b: '1' });
      expect(await idsOf(TOKENS)).toEqual({ a: '7', b: '1' });
      expect(await used()).toEqual({ ten: [0, 2], tokens: [0, 8] });
      expect([await expiryOf(TEN), await expiryOf(TOKENS)]).toEqual([40_000, 40_000]);
      expect((await key.stored()).state).toMatchObject({ expires: 10_000 });
      expect((await key.expiry()).state).toBeGreaterThanOrEqual(10_000);
    });

    test('that is sent again counts once in each', async () => {
      const again = withFurther([TEN, TOKENS], { guard: sentAgain });
      expect(await replica.checkHits('a', 7)).toBe('approved');
      expect(await again.checkHits('a', 7)).toBe('approved');
      expect(await used()).toEqual({ ten: [0, 1], tokens: [0, 7] });
      expect(await again.release('a')).toBe(true);
      expect(await again.release('a')).toBe(false);
      expect(await used()).toEqual({ ten: [0, 0], tokens: [0, 0] });
    });

    test('that is given again when Redis has forgotten it counts once in a longer window', async () => {
      const limits = [{ ...TEN, maximum: 9 }, TOKENS];
      const roomy = withFurther(limits, { leaseMillis: 2000 });
      for (const [i, id] of ['a', 'b', 'c', 'd', 'e'].entries()) {
        await key.setTime(i * 1000);
        await roomy.check([id]);
      }
      await roomy.amend('a', 7);
      expect(await used()).toEqual({ ten: [0, 5], tokens: [0, 11] });
      await key.setTime(5000);
      const again = withFurther(limits, { leaseMillis: 2000, guard: sentAgain });
      expect(await again.check(['a'])).toEqual(['approved']);
      expect(await used()).toEqual({ ten: [0, 5], tokens: [0, 5] });
    });

    test('in a later window begins the limit again, and its names', async () => {
      await replica.check(['a']);
      await key.setTime(9000);
      await replica.check(['b']);
      await key.setTime(10_000);
      expect(await replica.check(['c'])).toEqual(['approved']);
      expect(await idsOf(TEN)).toEqual({ c: '1' });
      expect(await used()).toEqual({ ten: [10_000, 1], tokens: [10_000, 1] });
      expect(await expiryOf(TEN)).toBe(50_000);
    });

    test('of a new key fails in a full Redis, and one of a known key does not', async () => {
      await replica.check(['a']);
      const other = await ScriptHarness.create(redis.client);
      const limits = { ...OWN, further: [TEN, TOKENS] };
      await whileFull(redis.client, async () => {
        await expect(other.replica('r1', { limits }).check(['x'])).rejects.toThrow();
        expect(await replica.checkHits('b', 5)).toBe('approved');
      });
      expect((await other.stored()).state).toBeUndefined();
      expect(await used()).toEqual({ ten: [0, 2], tokens: [0, 6] });
    });
  });

  describe('waiters', () => {
    test('are told by a wake of everything that is left', async () => {
      const wakes = await recordWakes(key.names.wakeChannel);
      await replica.check(['a', 'b', 'c']);
      await replica.checkOrWait(['w']);
      await key.setTime(100);
      await replica.release('a');
      expect(await wakes.read()).toMatchObject([
        {
          granted: ['w'],
          limits: '1000:20:3,ten=10000:3:requests,tokens=10000:50:hits',
          approved: '3:900000,ten=3:9900000,tokens=3:9900000',
          millisToRoom: 9900,
        },
      ]);
    });

    test('are told that there may be room sooner, though nobody is approved', async () => {
      const limits = { maxRequests: 100 };
      const two = withFurther([{ ...TEN, maximum: 2, windowMillis: 60_000 }, TOKENS], { limits });
      await two.checkHits('a', 5);
      await two.checkHits('b', 40);
      await two.checkHits('w', 20, { canWait: true });
      expect((await two.settle()).millisToRoom).toBe(60_000);
      const wakes = await recordWakes(key.names.wakeChannel);
      await two.release('a');
      expect(await wakes.read()).toMatchObject([{ granted: [], millisToRoom: 10_000 }]);
    });
  });

  describe('rules', () => {
    test('that remove a limit remove its name', async () => {
      await replica.check(['a']);
      const other = withFurther([TOKENS]);
      await other.check(['b']);
      expect(await idsOf(TEN)).toEqual({});
      expect(await used()).toEqual({ tokens: [0, 2] });
      const none = key.replica('r1', { limits: OWN });
      await none.check(['c']);
      expect(await idsOf(TOKENS)).toEqual({});
      expect(await redis.client.hexists(key.names.state, 'extra')).toBe(0);
    });

    test('that bring a limit back do not bring back ids from before the key was idle', async () => {
      await replica.check(['a']);
      // Redis removes the state when it is idle, and the names of the limits later.
      await key.lose('state');
      await key.setTime(12_000);
      await key.replica('r1', { limits: OWN }).check(['b']);
      expect(await replica.check(['c'])).toEqual(['approved']);
      expect(await idsOf(TEN)).toEqual({ c: '1' });
      expect(await replica.release('a')).toBe(false);
      expect(await used()).toEqual({ ten: [12_000, 1], tokens: [12_000, 1] });
    });

    test('with a longer window move the expiry of its name', async () => {
      await replica.check(['a']);
      await withFurther([{ ...TEN, windowMillis: 50_000 }]).check(['b']);
      expect(await expiryOf(TEN)).toBe(200_000);
    });
  });
});

describe('limits in force', () => {
  const SHORT = { windowMillis: 300, maxRequests: 3 };
  const LONG = { windowMillis: 1000, maxRequests: 10 };

  /** A replica whose rules were loaded at this time. */
  function replica(id: string, limits: ReplicaOptions['limits'], loaded: number): TestReplica {
    return key.replica(id, { limits: { ...limits, maxRequestsInQueue: 3 }, history: { loaded } });
  }

  async function limits(): Promise<string | undefined> {
    const state = await key.stored();
    return state.state && `${String(state.state.window)}:${String(state.state.max)}`;
  }

  const ids = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, i) => `${prefix}${i}`);

  test.each([
    ['', 0],
    [' after the clock has gone back', -3_600_000],
  ])('limits of a replica that may be gone stay for a minute%s', async (_when, begin) => {
    const [gone, living] = [replica('gone', SHORT, 0), replica('living', LONG, -4_000_000)];
    await gone.check(['a']);
    for (let at = 0; at < 60_000; at += 900) {
      await key.setTime(begin + at);
      await living.check([`b${at}`]);
      expect(await limits()).toBe('300:3');
    }
    await key.setTime(begin + 60_000);
    await living.check(['c']);
    expect(await limits()).toBe('1000:10');
  });

  describe('after Redis has lost a key', () => {
    const DEFAULTS = { windowMillis: 60_000, maxRequests: 100 };

    async function waitAndLose(): Promise<TestReplica> {
      const r1 = key.replica('r1', { limits: DEFAULTS, history: { since: 0 } });
      const overrides = { maxRequests: 2, maxRequestsInQueue: 40 };
      await r1.check(ids('a', 2), overrides);
      await r1.checkOrWait(['b', 'c', 'd', 'e'], overrides);
      await key.setTime(100);
      await key.lose();
      return r1;
    }
    const KNOWN = '60000:2*:40*';
    const WAITERS = { b: 1, c: 2, d: 3, e: 4 };

    test('a settle restores the limits that were in force, not those of the rules', async () => {
      const r1 = await waitAndLose();
      expect(await r1.settle(WAITERS, 59_900, KNOWN)).toMatchObject({ limits: KNOWN, waiting: 4 });
      await key.setTime(60_000);
      expect((await r1.settle()).granted).toEqual(['b', 'c']);
    });

    test.each([
      ['since the lost window come into force with the next check', 200, '1000:50'],
      ['before the lost window do not replace its limits', 99, '1000:2'],
    ])('rules that were loaded %s', async (_what, loaded, expected) => {
      const r1 = await waitAndLose();
      await key.setTime(2000);
      // The window of 1 s, which the replica knew last, ended 900 ms ago.
      await r1.settle(WAITERS, -900, '1000:2:40');
      expect(await limits()).toBe('1000:2');
      const newer = { ...DEFAULTS, windowMillis: 1000, maxRequests: 50 };
      await key.replica('r2', { limits: newer, history: { loaded } }).check(['x']);
      expect(await limits()).toBe(expected);
    });

    test('a key that a newcomer has made again gets back the limits that requests set', async () => {
      const r1 = await waitAndLose();
      expect(await key.replica('r2', { limits: DEFAULTS }).check(['x'])).toEqual(['approved']);
      await r1.settle(WAITERS, 59_900, KNOWN);
      await key.setTime(600);
      expect((await r1.settle()).granted).toEqual(['b']);
      expect((await key.stored()).state).toMatchObject({ approved: 2, max: 2, queueMax: 40 });
    });

    test('a check of one that waits gives such a key back the limits that requests set', async () => {
      const r1 = await waitAndLose();
      await key.replica('r2', { limits: DEFAULTS }).check(['x']);
      const known = { lowestTicket: 1, millisToWindowEnd: 59_900, limits: KNOWN };
      await r1.checkBatch([{ requestId: 'y', canWait: false }], {}, known);
      expect((await key.stored()).state).toMatchObject({ max: 2, queueMax: 40 });
    });

    test('a newer override of a request stays', async () => {
      const r1 = await waitAndLose();
      await key.replica('r2', { limits: DEFAULTS }).check(['x'], { maxRequests: 3 });
      await r1.settle(WAITERS, 59_900, KNOWN);
      expect((await key.stored()).state).toMatchObject({ max: 3, queueMax: 40 });
    });
  });
});

describe('calendars', () => {
  const HOUR = 3_600_000;
  const DAY = 24 * HOUR;
  function byCalendar(unit: CalendarUnit, timeZone: string): Algorithm {
    return { name: 'fixed_window', calendar: new ZonedCalendar(unit, timeZone) };
  }

  function replicaWith(
    algorithm: Algorithm,
    maxRequests: number,
    options: ReplicaOptions = {},
  ): TestReplica {
    const windowMillis = 31 * DAY;
    const limits = {
      algorithm,
      windowMillis,
      maxRequests,
      maxRequestsInQueue: 20,
      ...options.limits,
    };
    return key.replica(options.limits ? 'r2' : 'r1', { ...options, limits });
  }

  const BERLIN = byCalendar('day', 'Europe/Berlin');
  /** Midnight in Berlin, in ms after the start of a test that starts with 1 June of a year. */
  const MIDNIGHT = 22 * HOUR;
  const JUNE = Date.UTC(new Date().getUTCFullYear() + 1, 5, 1);

  describe('a call whose caller does not know that', () => {
    test('days have passed brings the calendar of that time, whatever it does', async () => {
      await key.begin(JUNE);
      const late = replicaWith(BERLIN, 2, { knownMillis: 0 });
      await late.check(['a']);
      await key.setTime(MIDNIGHT + 5 * DAY);
      expect(await late.check(['b', 'c', 'd'])).toEqual(['approved', 'approved', 'denied']);
      expect(await late.release('a')).toBe(false);
      expect(await late.amend('b', 1)).toBe(true);
      expect(await late.release('b')).toBe(true);
      await key.setTime(MIDNIGHT + 6 * DAY - 1);
      expect(await late.check(['e', 'f'])).toEqual(['approved', 'denied']);
      const [ticket] = await late.checkOrWait(['g']);
      expect(ticket).toEqual(expect.any(Number));
      await key.setTime(MIDNIGHT + 6 * DAY);
      expect((await late.settle({ g: Number(ticket) })).granted).toEqual(['g']);
      expect(await late.report({ remaining: 0 })).toEqual({ remaining: 0 });
      await late.pause(1);
      await late.withdraw(['g']);
      expect(await late.inspect()).toMatchObject({
        used: 2,
        limits: [{ windowMillis: DAY, millisToWindowEnd: DAY }],
      });
    });

    test("Redis's clock is days ahead begins the key on the day of Redis", async () => {
      await key.begin(JUNE);
      await replicaWith(BERLIN, 2, { knownMillis: -10 * DAY }).check(['a']);
      const { start, approved } = await redis.client.hgetall(key.names.state);
      expect({ start, approved }).toEqual({ start: `${JUNE - 2 * HOUR}`, approved: '1' });
    });
  });

  test('the hits of an approval expire, also if those of all others were given back', async () => {
    await key.begin(JUNE);
    const replica = replicaWith(BERLIN, 2);
    await replica.checkHits('a', 2);
    await replica.release('a');
    await replica.checkHits('b', 2);
    const { state, took } = await key.expiry();
    expect(took).toBe(state);
  });

  test.each([
    [0, 0],
    [1, 1],
  ])('a lost key that had room in %d ms has %d approvals', async (millisLeft, approved) => {
    await key.begin(JUNE);
    const replica = replicaWith(BERLIN, 1);
    await replica.check(['a']);
    const [ticket] = await replica.checkOrWait(['b']);
    await key.lose();
    await replica.settle({ b: Number(ticket) }, millisLeft);
    expect(await key.counted()).toMatchObject({ approved });
  });

  test('an idle key goes after three days, weeks or months of the greatest length', async () => {
    await key.begin(JUNE);
    const replica = replicaWith(byCalendar('month', 'UTC'), 1);
    await replica.checkReply([{ requestId: 'a', canWait: false }]);
    const month = (await redis.client.pexpiretime(key.names.state)) - key.startMillis;
    expect(month).toBe(30 * DAY + 3 * 31 * DAY);
  });
});
