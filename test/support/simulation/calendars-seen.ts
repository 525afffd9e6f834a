import { isDeepStrictEqual } from 'node:util';

import type { KeyLimits } from '../../../src/limiter/limiter.js';
import { calendarOf, isSameCalendar } from '../../../src/limiter/limits.js';
import { HEAD } from '../../../src/redis/scripts/check-codec.js';
import { timeOfStaleCall } from '../../../src/redis/scripts/stale-calendars.js';
import { KnownCalendar } from '../known-calendar.js';
import { windowLength } from '../stored-state.js';
import { calendarNamed } from './calendars.js';
import type { JudgedCall } from './judged-call.js';
import type { ScriptRun } from './script-run.js';
import type { Snapshot } from './snapshot.js';
import type { Change } from './stored-key.js';
import { Violation } from './violation.js';

/**
 * A call fails if Redis's time is in no window that its caller says of a calendar. It changes nothing then, and the caller
 * sends it again.
 * @returns whether the call failed as a whole
 */
export function checkStale(run: ScriptRun, reply: unknown, { before, after }: Change): boolean {
  const parts = partsOf(run, reply);
  for (const { rules, begin } of parts) {
    const isStale = calendarsIn(rules).some((calendar) => !saysWindowsFor(calendar, run.now));
    const time = timeOfStaleCall(begin);
    if (isStale ? time === run.now : time === undefined) continue;
    const detail = `${run.script} ${isStale ? 'goes by others' : 'fails'}`;
    throw new Violation('a call has windows of calendars for its time, or fails', detail);
  }
  const stale = parts.filter(({ begin }) => timeOfStaleCall(begin) !== undefined);
  if (stale.length === 0 || stale.length < parts.length) return false;
  if (!isDeepStrictEqual(contentOf(before), contentOf(after))) {
    throw new Violation('a call without the windows of a calendar changes nothing', run.script);
  }
  return true;
}

/** A window that a caller begins is a day of the calendar, if its rules have that. */
export function checkDays({ run, stored, after }: JudgedCall): void {
  const before = windowsIn(stored);
  const known = (run.batches.length > 0 ? run.batches : [run]).flatMap(({ rules }) =>
    calendarsIn(rules),
  );
  for (const { name, calendar, start, end } of windowsIn(after)) {
    const was = before.find(
      (each) => each.name === name && isSameCalendar(each.calendar, calendar),
    );
    if (was?.end === end || !known.some((each) => isSameCalendar(each, calendar))) continue;
    const day = calendarNamed(calendar).windowAt(run.now);
    if (end === day.end && (start === day.start || start === was?.start)) continue;
    const [from, to] = [start, end].map((time) => time - day.start);
    const detail = `from ${from} to ${to}, of ${day.end - day.start} ms`;
    throw new Violation('a window of a calendar is a day', detail);
  }
}

/** The parts of a call that have a reply of their own, but for those that are sent again with all names. */
function partsOf(
  { script, batches, rules }: ScriptRun,
  reply: unknown,
): { readonly rules: KeyLimits; readonly begin: unknown }[] {
  if (script === 'renew') return [];
  const replies = Array.isArray(reply) ? (reply as unknown[]) : [reply];
  if (script !== 'check') return [{ rules, begin: replies[0] }];
  let first = 0;
  return batches.flatMap((batch) => {
    const begin = replies[first];
    const isDecided = begin !== null && !(begin instanceof Error);
    first += isDecided ? HEAD + batch.checks.length : 1;
    return begin === null ? [] : [{ rules: batch.rules, begin }];
  });
}

function calendarsIn({ limits }: KeyLimits): KnownCalendar[] {
  const calendars = limits.map((limit) => calendarOf(limit));
  return calendars.filter((calendar) => calendar instanceof KnownCalendar);
}

function saysWindowsFor({ said }: KnownCalendar, now: number): boolean {
  return said !== undefined && now >= said.start && now < said.nextEnd;
}

/** The windows of limits with calendars, as if no report made them longer. */
function windowsIn({ state }: Snapshot): {
  readonly name: string;
  readonly calendar: KnownCalendar;
  readonly start: number;
  readonly end: number;
}[] {
  if (!state) return [];
  const further = state.further.map((limit) => ({ ...limit, window: limit.windowMillis }));
  return [{ ...state, name: '' }, ...further].flatMap((limit) => {
    const { name, start, algorithm } = limit;
    const calendar = algorithm && calendarOf({ algorithm });
    if (!(calendar instanceof KnownCalendar)) return [];
    return [{ name, calendar, start, end: start + windowLength(limit) }];
  });
}

/** What any change of a key shows in. */
function contentOf({ state, holds, waiting, leases }: Snapshot): unknown {
  return { state, holds, waiting, leases };
}
