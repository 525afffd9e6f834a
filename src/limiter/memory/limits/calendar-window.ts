import type { Calendar } from '../../calendar/calendar.js';
import { IDLE_WINDOWS, Window } from './window.js';

/**
 * The days, weeks or months of a time zone, which begin and end where the calendar says. `lua/limits/calendar-window.lua` has
 * the same rules.
 */
export class CalendarWindow extends Window {
  /**
   * @param now a time in the first window
   * @param longestMillis the length of the longest day, week or month
   */
  constructor(
    now: number,
    private readonly calendar: Calendar,
    private readonly longestMillis: number,
  ) {
    const { start, end } = calendar.windowAt(now);
    super(start, end - start);
  }

  override copy(): Window {
    return this.copyTo(new CalendarWindow(this.start, this.calendar, this.longestMillis));
  }

  /** The last window of the key may be a short one. */
  override get idleAt(): number {
    return this.end + IDLE_WINDOWS * this.longestMillis;
  }

  /** From the second window after the current one on, windows count as long as the first. */
  override millisToEndAfter(now: number, windows: number): number {
    if (windows === 0) return this.end - now;
    const { end, nextEnd } = this.calendar.windowAt(this.start);
    return Math.max(nextEnd, this.end) - now + (windows - 1) * (nextEnd - end);
  }

  /** Requests set no other length, and rules no other calendar. */
  override change(now: number): void {
    this.rollTo(now);
  }

  /** A new window begins where the calendar says, also if a report has kept the last one open for longer. */
  override rollTo(now: number): boolean {
    if (now < this.end) return false;
    const { start, end } = this.calendar.windowAt(now);
    this.restart(start, end - start);
    return true;
  }
}
