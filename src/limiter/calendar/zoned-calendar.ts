import { Temporal } from 'temporal-polyfill';

import type { Calendar, CalendarUnit, CalendarWindow } from './calendar.js';

/** A day, week or month of a time zone. */
interface Period {
  readonly firstDay: Temporal.PlainDate;
  /** The first instant of the first day, in milliseconds since 1970. */
  readonly start: number;
}

const ONE: Readonly<Record<CalendarUnit, Temporal.DurationLike>> = {
  day: { days: 1 },
  week: { weeks: 1 },
  month: { months: 1 },
};

const NOT_ASKED_YET: CalendarWindow = { start: Infinity, end: -Infinity, nextEnd: -Infinity };

/**
 * The windows of a time zone. A window begins with its first day, and ends when the next window begins, so that windows
 * are contiguous.
 *
 * - A day begins at its first instant: usually at midnight. If local time has midnight twice, it is the first of the
 *   two. If a clock change skips midnight, it is the instant of the change.
 * - A day of 23 or 25 hours is one window.
 * - A week begins on Monday, a month on its first day.
 * - A day that the time zone skipped, such as 30 December 2011 in `Pacific/Apia`, has no window.
 * - If a clock change goes back across midnight, local time has the day before again. The window of the new day has
 *   begun, and does not end.
 */
export class ZonedCalendar implements Calendar {
  /**
   * The last two answers: every check asks for the current window, and beside it perhaps for the one in which a pause ends.
   * To find a window takes 100 µs.
   */
  #last = NOT_ASKED_YET;
  #before = NOT_ASKED_YET;

  /** @throws RangeError if the time zone is unknown */
  constructor(
    readonly unit: CalendarUnit,
    readonly timeZone: string,
  ) {
    this.#dateAt(0);
  }

  /** @throws RangeError if `now` is not a number, or more than 275,000 years from 1970 */
  windowAt(now: number): CalendarWindow {
    if (!holds(this.#last, now)) {
      const other = holds(this.#before, now) ? this.#before : this.#find(now);
      this.#before = this.#last;
      this.#last = other;
    }
    return this.#last;
  }

  #find(now: number): CalendarWindow {
    let period = this.#beginningOn(this.#firstDayOf(this.#dateAt(now)));
    let next = this.#after(period);
    // A clock change went back across midnight, to a day whose window has ended.
    while (next.start <= now) {
      period = next;
      next = this.#after(period);
    }
    return { start: period.start, end: next.start, nextEnd: this.#after(next).start };
  }

  /** The next period that exists. Of a skipped day, Temporal says that it begins when the day after it does. */
  #after({ firstDay, start }: Period): Period {
    let next = this.#beginningOn(firstDay.add(ONE[this.unit]));
    while (next.start <= start) next = this.#beginningOn(next.firstDay.add(ONE[this.unit]));
    return next;
  }

  #beginningOn(firstDay: Temporal.PlainDate): Period {
    // Without a time of day, Temporal takes the first instant of the day.
    return { firstDay, start: firstDay.toZonedDateTime(this.timeZone).epochMilliseconds };
  }

  #firstDayOf(date: Temporal.PlainDate): Temporal.PlainDate {
    switch (this.unit) {
      case 'day':
        return date;
      case 'week':
        return date.subtract({ days: date.dayOfWeek - 1 });
      case 'month':
        return date.with({ day: 1 });
    }
  }

  /** The local date. */
  #dateAt(now: number): Temporal.PlainDate {
    const instant = Temporal.Instant.fromEpochMilliseconds(Math.floor(now));
    return instant.toZonedDateTimeISO(this.timeZone).toPlainDate();
  }
}

function holds({ start, end }: CalendarWindow, time: number): boolean {
  return time >= start && time < end;
}
