export const CALENDAR_UNITS = ['day', 'week', 'month'] as const;

export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

/** A window of a calendar, and the end of the window after it. In milliseconds since 1970. */
export interface CalendarWindow {
  /** The first millisecond of the window. */
  readonly start: number;
  /** The first millisecond after it, which is the start of the next window. */
  readonly end: number;
  readonly nextEnd: number;
}

/** The days, weeks or months of a time zone. */
export interface CalendarName {
  readonly unit: CalendarUnit;
  /** An IANA name, such as `Europe/Berlin`. */
  readonly timeZone: string;
}

const DAY_MILLIS = 24 * 3600 * 1000;

/** The length of a window that no clock change alters, and for months of the longest one, in milliseconds. */
export const NOMINAL_MILLIS: Readonly<Record<CalendarUnit, number>> = {
  day: DAY_MILLIS,
  week: 7 * DAY_MILLIS,
  month: 31 * DAY_MILLIS,
};

/**
 * Divides time into the days, weeks or months of a time zone. `ZonedCalendar` implements it. Load that class by
 * `import()`, and only if there is a calendar: its library takes 20 ms of CPU.
 */
export interface Calendar extends CalendarName {
  /**
   * Returns the window that holds a time.
   * @param now in milliseconds since 1970
   */
  windowAt(now: number): CalendarWindow;
}
