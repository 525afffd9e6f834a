import type {
  Calendar,
  CalendarName,
  CalendarUnit,
  CalendarWindow,
} from '../../src/limiter/calendar/calendar.js';

/**
 * A calendar as far as a script knows it: `lua/limits/calendar-window.lua`. A stored window stands. After it come the
 * windows that the caller says, else the stored next one, else windows of the greatest length.
 */
export class KnownCalendar implements Calendar {
  readonly unit: CalendarUnit;
  readonly timeZone: string;

  /**
   * @param longestMillis the length of the longest window
   * @param stored the window that a limit has; undefined if it has none yet
   * @param said what the caller of a script says; undefined if its rules do not have this calendar
   */
  constructor(
    { unit, timeZone }: CalendarName,
    private readonly longestMillis: number,
    private readonly stored: CalendarWindow | undefined,
    readonly said?: CalendarWindow,
  ) {
    this.unit = unit;
    this.timeZone = timeZone;
  }

  /** The same calendar to a caller that says these windows. */
  saidToBe(said: CalendarWindow | undefined): KnownCalendar {
    const { stored } = this;
    const isSame = said !== undefined && said.end === stored?.end;
    const known = isSame ? { ...stored, nextEnd: said.nextEnd } : stored;
    return new KnownCalendar(this, this.longestMillis, known, said);
  }

  /** The same calendar of a limit that has this window. */
  storedAs(stored: CalendarWindow): KnownCalendar {
    return new KnownCalendar(this, this.longestMillis, stored, this.said);
  }

  windowAt(now: number): CalendarWindow {
    const { stored, said } = this;
    if (stored && now >= stored.start && now < stored.end) return stored;
    if (said) return now < said.end ? said : this.#after(said);
    if (!stored) return this.#longest(now);
    if (now >= stored.end && now < stored.nextEnd) return this.#after(stored);
    return this.#longest(now - floorMod(now - stored.nextEnd, this.longestMillis));
  }

  #after({ end, nextEnd }: CalendarWindow): CalendarWindow {
    return { start: end, end: nextEnd, nextEnd: nextEnd + this.longestMillis };
  }

  #longest(start: number): CalendarWindow {
    const { longestMillis } = this;
    return { start, end: start + longestMillis, nextEnd: start + 2 * longestMillis };
  }
}

/** What callers say of calendars after limits, as `encodeRules` writes it: by `<unit>.<time zone>`. */
export function calendarsSaidIn(text: string): ReadonlyMap<string, CalendarWindow> {
  const said = text.split('@').slice(1);
  return new Map(
    said.map((each) => {
      const [name = '', windows = ''] = each.split('=');
      const [start, end, nextEnd] = windows.split(':').map(Number);
      return [name, { start: start!, end: end!, nextEnd: nextEnd! }];
    }),
  );
}

/** The name of a calendar in texts of limits. */
export function textOfCalendar({ unit, timeZone }: CalendarName): string {
  return `${unit}.${timeZone.replaceAll('/', '.')}`;
}

/** The remainder with the sign of the divisor, as Lua's `%` has it. */
function floorMod(value: number, divisor: number): number {
  return value - divisor * Math.floor(value / divisor);
}
