import type { CalendarWindow } from '../../../src/limiter/calendar/calendar.js';
import { type Algorithm, calendarOf } from '../../../src/limiter/limits.js';
import { KnownCalendar, textOfCalendar } from '../known-calendar.js';
import { type StoredLimit, type StoredState, windowEnd } from '../stored-state.js';
import type { ScriptRun } from './script-run.js';
import type { Snapshot } from './snapshot.js';

/** A change of what is stored of a limit with a calendar. */
type Change = (limit: StoredWindow, calendar: KnownCalendar) => KnownCalendar;
type StoredWindow = Pick<StoredState, 'start' | 'window' | 'report'> & {
  readonly algorithm: Algorithm;
};

/** What was stored, as a call finds it that says windows of calendars. */
export function withSaidCalendars(stored: Snapshot, { batches, rules }: ScriptRun): Snapshot {
  const said = new Map<string, CalendarWindow | undefined>();
  for (const limit of (batches[0]?.rules ?? rules).limits) {
    const calendar = calendarOf(limit);
    if (calendar instanceof KnownCalendar) said.set(textOfCalendar(calendar), calendar.said);
  }
  return withCalendars(stored, (_limit, calendar) =>
    calendar.saidToBe(said.get(textOfCalendar(calendar))),
  );
}

/** A window that is over goes on if the calendar has not begun another one since its start. */
export function withWindowsThatGoOn(stored: Snapshot, now: number): Snapshot {
  return withCalendars(stored, (limit, calendar) => {
    const { start } = limit;
    const window = calendar.windowAt(now);
    const goesOn = now >= windowEnd(limit) && window.start <= start && start <= now;
    return goesOn ? calendar.storedAs({ ...window, start }) : calendar;
  });
}

function withCalendars(stored: Snapshot, change: Change): Snapshot {
  const { state } = stored;
  if (!state) return stored;
  const { algorithm } = state;
  return {
    ...stored,
    state: {
      ...state,
      algorithm: changed({ ...state, algorithm }, change),
      further: state.further.map((limit) => withCalendar(limit, change)),
    },
  };
}

function withCalendar(limit: StoredLimit, change: Change): StoredLimit {
  const { algorithm, windowMillis } = limit;
  if (!algorithm) return limit;
  return { ...limit, algorithm: changed({ ...limit, window: windowMillis, algorithm }, change) };
}

function changed(limit: StoredWindow, change: Change): Algorithm {
  const { algorithm } = limit;
  const calendar = calendarOf(limit);
  if (!(calendar instanceof KnownCalendar)) return algorithm;
  return { name: 'fixed_window', calendar: change(limit, calendar) };
}
