import { randomUUID } from 'node:crypto';

import { CALENDAR_UNITS } from '../../../../src/limiter/calendar/calendar.js';
import { ZonedCalendar } from '../../../../src/limiter/calendar/zoned-calendar.js';
import { Instance } from '../../../../src/limiter/memory/instance.js';
import { MemoryBudget } from '../../../../src/limiter/memory/memory-budget.js';
import {
  approvedInYear,
  CHANGING_ZONES,
  leapYear,
  PERIODS,
} from '../../../support/calendar-year.js';
import { keyLimits } from '../../../support/limits.js';

const DAY = 86_400_000;
const BOUNDS = { maxIdsPerKey: Infinity, maxHoldsPerKey: Infinity };

describe.each(CALENDAR_UNITS)('each %s', (unit) => {
  test.each(CHANGING_ZONES)('of a year in %s has the maximum and no more', async (zone) => {
    const current = keyLimits({
      windowMillis: 31 * DAY,
      maxRequests: 2,
      maxRequestsInQueue: 0,
      algorithm: { name: 'fixed_window', calendar: new ZonedCalendar(unit, zone) },
    });
    const budget = new MemoryBudget(Infinity);
    const instance = new Instance('k', leapYear(), { current }, BOUNDS, budget, () => undefined);
    const approved = await approvedInYear(unit, zone, (time) => {
      const decisions = [1, 2, 3].map(() =>
        instance.check(time, randomUUID(), { key: 'k', canWait: false }),
      );
      return decisions.filter((decision) => decision === 'approved').length;
    });
    expect(approved.size).toBeGreaterThanOrEqual(PERIODS[unit]);
    expect([...approved].filter(([, count]) => count !== 2)).toEqual([]);
  });
});
