import type { CalendarWindow } from '../../../src/limiter/calendar/calendar.js';
import type { Algorithm } from '../../../src/limiter/kinds/kinds.js';
import { calendarOf } from '../../../src/limiter/limits.js';
import { KnownCalendar, textOfCalendar } from '../known-calendar.js';
import type { ScriptRun } from './script-run.js';
import type { Snapshot } from './snapshot.js';

/** What was stored, as a call finds it whose caller says windows of calendars. */
export function withSaidCalendars(stored: Snapshot, { batches, rules }: ScriptRun): Snapshot {
  const { state } = stored;
  if (!state) return stored;
  const said = new Map<string, CalendarWindow | undefined>();
  for (const limit of (batches[0]?.rules ?? rules).limits) {
    const calendar = calendarOf(limit);
    if (calendar instanceof KnownCalendar) said.set(textOfCalendar(calendar), calendar.said);
  }
  const asSaid = (algorithm: Algorithm): Algorithm => {
    const calendar = calendarOf({ algorithm });
    if (!(calendar instanceof KnownCalendar)) return algorithm;
    return {
      name: 'fixed_window',
      calendar: calendar.saidToBe(said.get(textOfCalendar(calendar))),
    };
  };
  const further = state.further.map((limit) =>
    limit.algorithm ? { ...limit, algorithm: asSaid(limit.algorithm) } : limit,
  );
  return { ...stored, state: { ...state, algorithm: asSaid(state.algorithm), further } };
}
