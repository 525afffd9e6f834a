import { CALENDAR_UNITS, type CalendarUnit } from '../../../src/limiter/calendar/calendar.js';
import { ZonedCalendar } from '../../../src/limiter/calendar/zoned-calendar.js';
import type { Algorithm } from '../../../src/limiter/limits.js';
import { VERDICT } from '../../../src/redis/scripts/check-codec.js';
import type { SettleReply } from '../../../src/redis/scripts/settle-codec.js';
import { approvedInYear, CHANGING_ZONES, leapYear, PERIODS } from '../../support/calendar-year.js';
import { extent } from '../../support/extent.js';
import { luaNumber } from '../../support/lua-constants.js';
import {
  type ReplicaOptions,
  type TestReplica,
  useScriptHarness,
} from '../../support/script-harness.js';
import { sentAgain, unguarded } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

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
const RECOVERY_MILLIS = luaNumber('lib/recovery', 'RECOVERY_MILLIS');
const JUNE = Date.UTC(new Date().getUTCFullYear() + 1, 5, 1);

describe.each(CALENDAR_UNITS)('each %s', (unit) => {
  test.each(extent(CHANGING_ZONES.slice(0, 3), CHANGING_ZONES))(
    'of a year in %s has the maximum and no more',
    async (zone) => {
      const start = leapYear();
      await key.begin(start);
      const replica = replicaWith(byCalendar(unit, zone), 2);
      let id = 0;
      const approved = await approvedInYear(unit, zone, async (time) => {
        await key.setTimeInSilence(time - start);
        const ids = [1, 2, 3].map(() => `${(id += 1)}`);
        const { verdicts } = await replica.checkReply(
          ids.map((requestId) => ({ requestId, canWait: false })),
        );
        return verdicts.filter((verdict) => verdict === VERDICT.approved).length;
      });
      expect(approved.size).toBeGreaterThanOrEqual(PERIODS[unit]);
      expect([...approved].filter(([, count]) => count !== 2)).toEqual([]);
    },
  );
});

describe('a call whose caller does not know that', () => {
  test.each<[what: string, guard: typeof sentAgain]>([
    ['a day has begun', unguarded],
    ['a day has begun, and that is sent again', sentAgain],
  ])('%s counts in that day', async (_what, guard) => {
    await key.begin(JUNE);
    await key.setTime(MIDNIGHT - 1);
    const replica = replicaWith(BERLIN, 2, { guard, knownMillis: MIDNIGHT - 1 });
    expect(await replica.check(['a', 'b', 'c'])).toEqual(['approved', 'approved', 'denied']);
    await key.setTime(MIDNIGHT);
    expect(await replica.check(['d', 'e', 'f'])).toEqual(['approved', 'approved', 'denied']);
    await key.setTime(MIDNIGHT + DAY - 1);
    expect(await replica.check(['g'])).toEqual(['denied']);
  });

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

test("callers with other rules of time zones do not move a day's end, and begin no day twice", async () => {
  await key.begin(JUNE);
  const replica = replicaWith(BERLIN, 2);
  const calendar = new ZonedCalendar('day', 'Etc/GMT-1');
  // It says that days begin an hour later.
  const later = replicaWith(
    {
      name: 'fixed_window',
      calendar: {
        unit: 'day',
        timeZone: 'Europe/Berlin',
        windowAt: (now) => calendar.windowAt(now),
      },
    },
    2,
    { limits: {} },
  );
  await key.setTime(MIDNIGHT - 1);
  expect(await later.check(['a', 'b', 'c'])).toEqual(['approved', 'approved', 'denied']);
  await key.setTime(MIDNIGHT);
  expect(await later.check(['d'])).toEqual(['denied']);
  await key.setTime(MIDNIGHT + HOUR);
  expect(await replica.check(['e', 'f'])).toEqual(['approved', 'approved']);
  expect(await later.check(['g'])).toEqual(['denied']);
  await key.setTime(MIDNIGHT + DAY);
  expect(await later.check(['h', 'i', 'j'])).toEqual(['approved', 'approved', 'denied']);
});

test('a caller without the calendar keeps it in force, with the end that is known of the next day', async () => {
  await key.begin(JUNE);
  const replica = replicaWith(BERLIN, 2, { history: { loaded: 0 } });
  await replica.check(['a', 'b']);
  const other = key.replica('r2', {
    limits: { windowMillis: 1000, maxRequests: 5, maxRequestsInQueue: 20 },
    history: { loaded: -1000 },
  });
  expect(await other.check(['c'])).toEqual(['denied']);
  await key.setTime(30_000);
  expect(await other.inspect()).toMatchObject({
    limits: [{ millisToWindowEnd: MIDNIGHT - 30_000 }],
  });
});

describe("after Redis's clock has gone back over midnight", () => {
  test('approvals count in the day before, and midnight begins the day again', async () => {
    await key.begin(JUNE);
    const replica = replicaWith(BERLIN, 3);
    await key.setTime(MIDNIGHT + HOUR);
    await replica.check(['a', 'b']);
    await key.setTime(MIDNIGHT - HOUR);
    expect(await replica.check(['c', 'd'])).toEqual(['approved', 'denied']);
    expect(await replica.inspect()).toMatchObject({
      used: 3,
      limits: [{ windowMillis: DAY, millisToWindowEnd: HOUR }],
    });
    await key.setTime(MIDNIGHT);
    expect(await replica.check(['e'])).toEqual(['approved']);
    expect(await replica.inspect()).toMatchObject({
      used: 1,
      limits: [{ windowMillis: DAY, millisToWindowEnd: DAY }],
    });
  });

  test('a caller that has not heard of it calls again', async () => {
    await key.begin(JUNE);
    const replica = replicaWith(BERLIN, 1, { knownMillis: MIDNIGHT + HOUR });
    await key.setTime(MIDNIGHT + HOUR);
    await replica.check(['a']);
    await key.setTime(MIDNIGHT - HOUR);
    expect(await replica.check(['b'])).toEqual(['denied']);
    await key.setTime(MIDNIGHT);
    expect(await replica.check(['c'])).toEqual(['approved']);
  });
});

describe('a key that an earlier version has changed, which knows no calendars,', () => {
  test('goes on in the window of the calendar', async () => {
    await key.begin(JUNE);
    const replica = replicaWith(BERLIN, 2);
    await replica.check(['a']);
    // It removes the field that says that there are others.
    await redis.client.hdel(key.names.state, 'more');
    await key.setTime(MIDNIGHT - 1);
    expect(await replica.check(['b', 'c'])).toEqual(['approved', 'denied']);
    await key.setTime(MIDNIGHT);
    expect(await replica.check(['d'])).toEqual(['approved']);
  });

  test('takes the window that this has begun as one of the calendar', async () => {
    await key.begin(JUNE);
    const replica = replicaWith(BERLIN, 2);
    await replica.check(['a']);
    await key.setTime(MIDNIGHT + 12 * HOUR);
    const begun = key.startMillis + MIDNIGHT + 10 * HOUR;
    await redis.client.hset(key.names.state, { start: begun, approved: 1 });
    expect(await replica.check(['b', 'c'])).toEqual(['approved', 'denied']);
    expect(await replica.inspect()).toMatchObject({ limits: [{ millisToWindowEnd: 12 * HOUR }] });
  });
});

test('a lost key is full until its day ends, if somebody waited', async () => {
  await key.begin(JUNE);
  const replica = replicaWith(BERLIN, 1, { leaseMillis: 2 * DAY });
  await replica.check(['a']);
  const [ticket] = await replica.checkOrWait(['b']);
  const limits = await redis.client.hget(key.names.state, 'limits');
  await key.lose();
  await key.setTime(HOUR);
  const settled = await replica.settle({ b: Number(ticket) }, MIDNIGHT - HOUR, limits!);
  expect(settled.putBack).toEqual(['b']);
  await key.setTime(MIDNIGHT - 1);
  expect(await replica.check(['c'])).toEqual(['denied']);
  await key.setTime(MIDNIGHT);
  expect((await replica.settle()).granted).toEqual(['b']);
});

describe('a lost key with waiters, whose calendar is no longer in the rules,', () => {
  const RULES_WITHOUT_CALENDAR = '1000:5:20';

  /** Redis loses a key with a full day and a waiter. At `time` the rules have another limit. */
  async function loseBefore(time: number): Promise<{
    replica: TestReplica;
    settle: (millisToRoom: number) => Promise<SettleReply>;
  }> {
    await key.begin(JUNE);
    const options = { leaseMillis: 3 * DAY };
    const before = replicaWith(BERLIN, 1, options);
    await before.check(['a']);
    const [ticket] = await before.checkOrWait(['b']);
    const known = await redis.client.hget(key.names.state, 'limits');
    await key.lose();
    await key.setTime(time);
    const limits = { windowMillis: 1000, maxRequests: 5, maxRequestsInQueue: 20 };
    const replica = key.replica('r1', { ...options, limits, history: { loaded: time } });
    return {
      replica,
      settle: (millisToRoom) => replica.settle({ b: Number(ticket) }, millisToRoom, known!),
    };
  }

  test('is full until its day ends, and takes the rules then', async () => {
    const { replica, settle } = await loseBefore(HOUR);
    expect((await settle(MIDNIGHT - HOUR)).putBack).toEqual(['b']);
    await key.setTime(MIDNIGHT - 1);
    expect(await replica.settle()).toMatchObject({ granted: [], millisToRoom: 1 });
    await key.setTime(MIDNIGHT);
    expect(await replica.settle()).toMatchObject({
      granted: ['b'],
      limits: RULES_WITHOUT_CALENDAR,
    });
  });

  test('takes the rules at once if its day has ended', async () => {
    const { replica, settle } = await loseBefore(MIDNIGHT + HOUR);
    expect((await settle(-HOUR)).putBack).toEqual(['b']);
    await key.setTime(MIDNIGHT + HOUR + RECOVERY_MILLIS);
    expect(await replica.settle()).toMatchObject({
      granted: ['b'],
      limits: RULES_WITHOUT_CALENDAR,
    });
  });
});

test('the hits of an approval expire, also if those of all others were given back', async () => {
  await key.begin(JUNE);
  const replica = replicaWith(BERLIN, 2);
  await replica.checkHits('a', 2);
  await replica.release('a');
  await replica.checkHits('b', 2);
  const { state, hits } = await key.expiry();
  expect(hits).toBe(state);
});

test('an idle key goes after three days, weeks or months of the greatest length', async () => {
  await key.begin(JUNE);
  const replica = replicaWith(byCalendar('month', 'UTC'), 1);
  await replica.checkReply([{ requestId: 'a', canWait: false }]);
  const month = (await redis.client.pexpiretime(key.names.state)) - key.startMillis;
  expect(month).toBe(30 * DAY + 3 * 31 * DAY);
});
