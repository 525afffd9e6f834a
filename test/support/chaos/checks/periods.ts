import { isDeepStrictEqual } from 'node:util';

import { calendarOf } from '../../../../src/limiter/limits.js';
import { periodAt } from '../declared/short-calendars.js';
import { overlaps } from '../faults/fault.js';
import { describeEntry } from '../ledger.js';
import { LONGEST_REPORT_MILLIS } from '../limits.js';
import type { Evidence } from './evidence.js';
import { keptLimits } from './kept-limits.js';
import { observedOf } from './observed-of.js';
import { isReported } from './windows.js';

/** MONITOR shows a later time than the one by which a script decides: Redis takes that when the script begins. */
const SHOWN_LATER_MILLIS = 50;

/**
 * Approvals by a calendar that count in another window than the day, week or month in which Redis gave them. While rules
 * change, and while a key keeps older limits, a window may begin at another time: a replica whose rules lack the calendar of
 * a key only knows the next window.
 */
export function outOfPeriods(evidence: Evidence): string[] {
  return evidence.ledger.approvals.flatMap((approval) => {
    const observed = observedOf(evidence, approval);
    if (!observed || observed.mayBeRenewal) return [];
    const { at, window, limits, inForce } = observed;
    return [...inForce.values()].flatMap(({ limit }) => {
      const calendar = calendarOf(limit);
      const start = limit.name === undefined ? window.start : limits.get(limit.name);
      if (!calendar || start === undefined) return [];
      const period = periodAt(calendar, start);
      const mayBeLater = isReported(limit, approval.key) ? LONGEST_REPORT_MILLIS : 0;
      const latest = period.end + mayBeLater + SHOWN_LATER_MILLIS;
      if (start === period.start && at >= start && at < latest) return [];
      const isNoPeriod = start !== period.start;
      const from = Math.min(start, at);
      if (isNoPeriod && evidence.limits.isChangingIn(from, at)) return [];
      const kept = keptLimits(evidence, approval.key, from, at).flat();
      if (isNoPeriod && kept.some((each) => isDeepStrictEqual(each, limit))) return [];
      // A server may stand still in the middle of a script.
      if (evidence.faults.some((fault) => fault.silencesRedis && overlaps(fault, at, at)))
        return [];
      return [
        `${describeEntry(approval)} was given at ${at} and counts in a window from ${start}, which is not the ` +
          `${calendar.unit} of ${calendar.timeZone} then`,
      ];
    });
  });
}
