import type {
  Calendar,
  CalendarUnit,
  CalendarWindow,
} from '../../src/limiter/calendar/calendar.js';

/** A calendar whose days take seconds: most have 24 parts, every third has 23, and the one after that has 25. */
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

  windowAt(now: number): CalendarWindow {
    const { from, partMillis } = this;
    const starts = [0, 24, 47, 72].map((part) => part * partMillis);
    const cycle = 72 * partMillis;
    const begun = from + Math.floor((now - from) / cycle) * cycle;
    const index = starts.findLastIndex((start) => begun + start <= now);
    const at = (i: number): number => begun + (i > 3 ? cycle : 0) + starts[i > 3 ? i - 3 : i]!;
    return { start: at(index), end: at(index + 1), nextEnd: at(index + 2) };
  }
}
