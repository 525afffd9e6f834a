import type { CalendarUnit } from '../../src/limiter/calendar/calendar.js';
import { localPeriods } from './local-periods.js';

const HOUR = 3_600_000;
const MINUTE = 60_000;
const DAYS = 366;

/** Time zones with all kinds of changes of the clock: at midnight, by half an hour, in the other half of the year, none. */
export const CHANGING_ZONES = [
  'America/New_York',
  'Australia/Lord_Howe',
  'America/Santiago',
  'Africa/Cairo',
  'America/Havana',
  'Asia/Kathmandu',
  'Pacific/Kiritimati',
  'Australia/Sydney',
  'Europe/Berlin',
  'UTC',
];

/** The start of the next leap year that is wholly in the future, so that nothing expires by the clock of a real Redis. */
export function leapYear(): number {
  let year = new Date().getUTCFullYear() + 1;
  while (year % 4 !== 0) year += 1;
  return Date.UTC(year, 0, 1);
}

/**
 * Sends checks right before and right after each day, week or month of a leap year begins.
 * @param check sends more checks than the maximum at a time; returns how many were approved
 * @returns how many were approved in each of them
 */
export async function approvedInYear(
  unit: CalendarUnit,
  zone: string,
  check: (time: number) => Promise<number> | number,
): Promise<Map<string, number>> {
  const periodOf = localPeriods(unit, zone);
  const approved = new Map<string, number>();
  const checkAt = async (time: number): Promise<void> => {
    const period = periodOf(time);
    approved.set(period, (approved.get(period) ?? 0) + (await check(time)));
  };
  const start = leapYear();
  for (let hour = start; hour < start + DAYS * 24 * HOUR; hour += HOUR) {
    const period = periodOf(hour);
    if (periodOf(hour + HOUR) === period) continue;
    // The offsets of these zones are whole minutes.
    let next = hour;
    while (periodOf(next) === period) next += MINUTE;
    await checkAt(next - 1);
    await checkAt(next);
  }
  return approved;
}

/** How many days, weeks or months a leap year has at least. */
export const PERIODS: Readonly<Record<CalendarUnit, number>> = { day: DAYS, week: 52, month: 12 };
