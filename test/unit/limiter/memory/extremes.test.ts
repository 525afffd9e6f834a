import type { Algorithm } from '../../../../src/limiter/limits.js';
import { Instance } from '../../../../src/limiter/memory/instance.js';
import { MemoryBudget } from '../../../../src/limiter/memory/memory-budget.js';
import { extent } from '../../../support/extent.js';
import { keyLimits } from '../../../support/limits.js';
import { startOfControlledTime } from '../../../support/redis-time.js';

const BOUNDS = { maxIdsPerKey: Infinity, maxHoldsPerKey: Infinity };
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const YEAR = 366 * 24 * 60 * MINUTE;
const BILLION = 1_000_000_000;
/** A million at full extent. */
const CHECKS = extent(100_000, 1_000_000);
const START = startOfControlledTime();

function bucket(burst: number): Algorithm {
  return { name: 'token_bucket', burst };
}

function sliding(steps: number): Algorithm {
  return { name: 'sliding_window', steps };
}

/** A key of the embedded limiter. */
function instanceOf(
  algorithm: Algorithm,
  windowMillis: number,
  maxRequests: number,
  onGrant: (ids: readonly string[]) => void = () => undefined,
): Instance {
  const current = keyLimits({ windowMillis, maxRequests, maxRequestsInQueue: BILLION, algorithm });
  return new Instance('k', START, { current }, BOUNDS, new MemoryBudget(Infinity), onGrant);
}

let ids = 0;

function check(instance: Instance, now: number, canWait = false, hits = 1): string {
  ids += 1;
  return instance.check(now, String(ids), { key: 'k', canWait, hits });
}

function usedOf(instance: Instance, now: number): number {
  return instance.inspect(now).limits[0].used;
}

/** How many waiters a bucket with a burst of 1 serves in this time, while the queue is never empty. */
function servedIn(millis: number, perSecond: number, late: number): number {
  let served = 0;
  const instance = instanceOf(
    bucket(1),
    SECOND,
    perSecond,
    (granted) => (served += granted.length),
  );
  // Of which a settle serves fewer.
  const waiting = Math.max(10, perSecond / 10);
  for (
    let now = START;
    now <= START + millis + late;
    now = Math.ceil(instance.turns.exactRoomAt) + late
  ) {
    instance.settle(now);
    while (instance.waiting < waiting) check(instance, now, true);
  }
  return served;
}

describe('the rate at which waiters are served', () => {
  test.each([1, 50, 100, 1000])('follows the rule over a minute: %i per second', (perSecond) => {
    for (const late of [0, 1, 10]) {
      const served = servedIn(MINUTE, perSecond, late);
      expect({ late, isExact: Math.abs(served / (60 * perSecond) - 1) < 0.01 }).toEqual({
        late,
        isExact: true,
      });
    }
  });

  test('does not drift in many approvals', () => {
    // Doubles have neither its pace nor the reciprocal of that.
    const millis = (CHECKS / 350) * SECOND;
    const served = servedIn(millis, 350, 0);
    expect(Math.abs(served - CHECKS)).toBeLessThanOrEqual(1 + 0.03 * 350);
  });
});

describe('a billion hits', () => {
  const EACH = BILLION / CHECKS;

  test('of a sliding window add up exactly, and end to count exactly', () => {
    const instance = instanceOf(sliding(60), YEAR, BILLION);
    let denied = 0;
    // Over all of its steps.
    const between = Math.floor(YEAR / CHECKS);
    for (let i = 0; i < CHECKS; i += 1) {
      if (check(instance, START + i * between, false, EACH) !== 'approved') denied += 1;
    }
    const last = START + CHECKS * between;
    expect([denied, usedOf(instance, last)]).toEqual([0, BILLION]);
    expect(check(instance, last)).toBe('denied');
    const step = YEAR / 60;
    instance.settle(START + YEAR + step - 1);
    expect(usedOf(instance, START + YEAR + step - 1)).toBe(BILLION);
    const inFirstStep = EACH * Math.ceil(step / between);
    expect(usedOf(instance, START + YEAR + step)).toBe(BILLION - inFirstStep);
  });

  test.each([
    ['second', SECOND],
    ['year', YEAR],
  ])('of a bucket with a billion per %s add up exactly', (_what, windowMillis) => {
    const instance = instanceOf(bucket(BILLION), windowMillis, BILLION);
    for (let i = 0; i < CHECKS; i += 1) check(instance, START, false, EACH - 1);
    expect(usedOf(instance, START)).toBe(BILLION - CHECKS);
    expect(check(instance, START, false, CHECKS)).toBe('approved');
    expect(check(instance, START)).toBe('denied');
    expect(usedOf(instance, START + windowMillis / 2)).toBe(BILLION / 2);
    expect(usedOf(instance, START + windowMillis)).toBe(0);
  });
});

describe('the extremes of a limit', () => {
  const algorithms = [sliding(2), sliding(60), bucket(1), bucket(BILLION)];
  const windows = [1, SECOND, YEAR];
  const maxima = [1, 2, BILLION];
  test.each(
    algorithms.flatMap((algorithm) =>
      windows.flatMap((windowMillis) =>
        maxima.map((maximum) => [algorithm, maximum, windowMillis] as const),
      ),
    ),
  )(
    'have times that are exact, and room in time: %j, %i per %i ms',
    (algorithm, maximum, windowMillis) => {
      const served: string[] = [];
      const instance = instanceOf(algorithm, windowMillis, maximum, (granted) =>
        served.push(...granted),
      );
      const burst =
        algorithm.name === 'token_bucket' ? Math.min(algorithm.burst, maximum) : maximum;
      expect(check(instance, START, false, burst)).toBe('approved');
      expect(check(instance, START)).toBe('denied');
      const [{ resetMillis }] = instance.quota(START).limits;
      expect(resetMillis).toBeGreaterThan(0);
      expect(resetMillis).toBeLessThanOrEqual(2 * windowMillis + 2);
      while (instance.waiting < 50) check(instance, START, true);
      for (const time of [
        Math.ceil(instance.turns.exactRoomAt),
        START + instance.turns.millisToTurn(START, { hits: burst }),
      ]) {
        expect(Number.isSafeInteger(Math.round(time * 1000))).toBe(true);
      }
      let settles = 0;
      for (
        let now = Math.ceil(instance.turns.exactRoomAt);
        instance.waiting > 0;
        now = Math.ceil(instance.turns.exactRoomAt)
      ) {
        expect(now).toBeGreaterThan(START);
        instance.settle(now);
        settles += 1;
      }
      expect(served).toHaveLength(50);
      // Each settle serves somebody.
      expect(settles).toBeLessThanOrEqual(1000);
    },
  );
});
