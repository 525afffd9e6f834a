import { isDeepStrictEqual } from 'node:util';

import type { KeyLimits } from '../../../src/limiter/limiter.js';
import { calendarOf, isSameCalendar } from '../../../src/limiter/limits.js';
import { HEAD } from '../../../src/redis/scripts/check-codec.js';
import { timeOfStaleCall } from '../../../src/redis/scripts/shared-arguments.js';
import { KnownCalendar } from '../known-calendar.js';
import { windowLength } from '../stored-state.js';
import { calendarNamed } from './calendars.js';
import type { JudgedCall } from './judged-call.js';
import type { ScriptRun } from './script-run.js';
import { type Snapshot, Violation } from './snapshot.js';
import type { Change } from './stored-key.js';

/** The window of a limit that has a calendar. Times are milliseconds by Redis's clock. */
interface WindowOfLimit {
  readonly name: string;
  readonly calendar: KnownCalendar;
  readonly start: number;
  readonly end: number;
}

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

/**
 * A window that a caller begins is a day of the calendar, if its rules have that. If they have not, the window of a key that
 * Redis has lost ends when the caller says.
 */
export function checkDays({ run, stored, after }: JudgedCall): void {
  const before = windowsIn(stored);
  const known = (run.batches.length > 0 ? run.batches : [run]).flatMap(({ rules }) =>
    calendarsIn(rules),
  );
  for (const window of windowsIn(after)) {
    const isItsCalendar = (calendar: KnownCalendar): boolean =>
      isSameCalendar(calendar, window.calendar);
    const was = before.find(
      ({ name, calendar }) => name === window.name && isItsCalendar(calendar),
    );
    if (was?.end === window.end) continue;
    if (known.some(isItsCalendar)) checkDay(window, run, was?.start);
    else if (!stored.state) checkLostWindow(window, run);
  }
}

/** @param before the start of the window that the limit had before the call */
function checkDay(
  { calendar, start, end }: WindowOfLimit,
  { now }: ScriptRun,
  before: number | undefined,
): void {
  const day = calendarNamed(calendar).windowAt(now);
  if (end === day.end && (start === day.start || start === before)) return;
  const [from, to] = [start, end].map((time) => time - day.start);
  const detail = `from ${from} to ${to}, of ${day.end - day.start} ms`;
  throw new Violation('a window of a calendar is a day', detail);
}

function checkLostWindow({ end }: WindowOfLimit, { now, knownMillisToRoom }: ScriptRun): void {
  if (knownMillisToRoom === undefined) return;
  const late = end - now - Math.max(1, knownMillisToRoom);
  if (late > 0) throw new Violation('a lost window ends when its caller says', `${late} ms later`);
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
function windowsIn({ state }: Snapshot): WindowOfLimit[] {
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
