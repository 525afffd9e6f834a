import type {
  Calendar,
  CalendarUnit,
  CalendarWindow,
} from '../../src/limiter/calendar/calendar.js';

/** A calendar with short days: most have 24 parts, every third has 23, and the one after that has 25. */
export class ShortCalendar implements Calendar {
  readonly unit: CalendarUnit = 'day';

  /**
   * @param timeZone any name
   * @param from when it begins a day of 24 parts, in milliseconds since 1970
   * @param partMillis the length of a part, in milliseconds
   */
  constructor(
    readonly timeZone: string,
    private readonly from: number,
    private readonly partMillis: number,
  ) {}

  /** The length of the longest day, in milliseconds. */
  get longestMillis(): number {
    return 25 * this.partMillis;
  }

  /** The length of any three days in a row, in milliseconds. */
  get threeDaysMillis(): number {
    return 72 * this.partMillis;
  }

  windowAt(now: number): CalendarWindow {
    const { from, partMillis, threeDaysMillis: cycle } = this;
    const starts = [0, 24, 47, 72].map((part) => part * partMillis);
    const begun = from + Math.floor((now - from) / cycle) * cycle;
    const index = starts.findLastIndex((start) => begun + start <= now);
    const at = (i: number): number => begun + (i > 3 ? cycle : 0) + starts[i > 3 ? i - 3 : i]!;
    return { start: at(index), end: at(index + 1), nextEnd: at(index + 2) };
  }
}
