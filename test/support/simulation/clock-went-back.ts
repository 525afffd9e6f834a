import { calendarOf } from '../../../src/limiter/limits.js';
import { KnownCalendar } from '../known-calendar.js';
import { stepsOf } from '../stored-counts.js';
import { idleAt, type StoredLimit } from '../stored-state.js';
import { keptMillisOf, type Snapshot, Violation } from './snapshot.js';

/** A hold as far as its length counts. */
interface TimedHold {
  readonly lapsesAt: number;
  readonly millis: number;
}

/** When a hold lapses if it lasts no longer than it was set for from now on. */
export function lapseByNow({ lapsesAt, millis }: TimedHold, now: number): number {
  return Math.min(lapsesAt, now + millis);
}

type TimedLimit = Pick<StoredLimit, 'start' | 'stored' | 'report' | 'windowMillis' | 'algorithm'>;

/**
 * What a limit stores of times, as the first call after a step of the clock has to take it.
 * @param setAt when a report was set at the latest
 */
function limitByNow(
  { start, stored, report, windowMillis, algorithm }: TimedLimit,
  now: number,
  setAt: number,
): Omit<TimedLimit, 'windowMillis'> & { readonly isMoved: boolean } {
  const byNow = {
    algorithm,
    start: Math.min(start, now),
    stored,
    report: report && { ...report, until: report.until - Math.max(0, setAt - now) },
    isMoved: start > now,
  };
  const calendar = algorithm && calendarOf({ algorithm });
  if (byNow.isMoved && calendar instanceof KnownCalendar) {
    // Its approvals count in the window that holds this time.
    const window = calendar.windowAt(now);
    const entered = { name: 'fixed_window', calendar: calendar.storedAs(window) } as const;
    return { ...byNow, start: window.start, algorithm: entered };
  }
  if (stored?.kind === 'token_bucket') {
    const timeMicros = Math.min(stored.timeMicros, now * 1000);
    const paceSinceMicros = Math.min(stored.paceSinceMicros, now * 1000);
    const isMoved = byNow.isMoved || stored.timeMicros > (now + 1) * 1000;
    return { ...byNow, stored: { ...stored, timeMicros, paceSinceMicros }, isMoved };
  }
  if (stored?.kind !== 'sliding_window' || stored.stepStart <= now + windowMillis) return byNow;
  // All that counts moves into a step that begins now, and has no ids.
  const { steps } = stepsOf(windowMillis, algorithm);
  const number = stored.number + steps + 1;
  const sum = [...stored.sums.values()].reduce((all, each) => all + each, 0);
  const sums = new Map(sum > 0 ? [[number, sum]] : []);
  return { ...byNow, stored: { ...stored, stepStart: now, number, sums }, isMoved: true };
}

/**
 * What was stored before Redis's clock went back, as the first call after the step has to take it: windows that begin in
 * the future begin now with what was approved in them, steps of more than a window later become one that begins now, no
 * hold lasts longer than its length from now on, and a report lasts as long as it still had to when it was set, or later.
 */
export function byNow(stored: Snapshot, now: number): Snapshot {
  const { state, holds } = stored;
  if (!state) return stored;
  const { window, setAt } = state;
  const own = limitByNow({ ...state, windowMillis: window }, now, setAt);
  const further = state.further.map((limit) => ({ ...limit, ...limitByNow(limit, now, setAt) }));
  const isMoved = own.isMoved || further.some((limit) => limit.isMoved);
  const isBack = isMoved || state.setAt > now;
  const { start, report, algorithm = state.algorithm } = own;
  const expires = isBack
    ? Math.min(state.expires, idleAt({ ...state, start, report, algorithm, further }))
    : state.expires;
  const served = isBack ? Math.min(state.served, now) : state.served;
  return {
    ...stored,
    state: { ...state, start, stored: own.stored, report, algorithm, further, expires, served },
    holds: new Map(
      [...holds].map(([id, hold]) => [id, { ...hold, lapsesAt: lapseByNow(hold, now) }]),
    ),
  };
}

/**
 * From the key's first call after a step of the clock on, nothing lasts longer than it was set for. A pause is compared
 * by the judge, which knows its length.
 * @param renewed when each lease ends that a renewal has extended last, by replica. A renewal writes no state, so within a
 *   window only the caller's own lease shows a step: docs/reliability.md
 */
export function checkNothingLastsLonger(
  { state, holds, leases }: Snapshot,
  now: number,
  leaseMillis: number,
  renewed: ReadonlyMap<string, number>,
): void {
  if (!state) return;
  const fail = (what: string, millis: number): void => {
    throw new Violation('nothing lasts longer than it was set for', `${what} by ${millis} ms`);
  };
  const own = { ...state, name: 'own', windowMillis: state.window };
  for (const { name, start, stored, windowMillis } of [own, ...state.further]) {
    if (start > now) fail(`the window of ${name}`, start - now);
    if (stored?.kind === 'sliding_window' && stored.stepStart > now + windowMillis) {
      fail(`a step of ${name}`, stored.stepStart - now);
    }
    if (stored?.kind === 'token_bucket' && stored.timeMicros > (now + 1) * 1000) {
      fail(`what has not drained of ${name}`, stored.timeMicros / 1000 - now);
    }
  }
  for (const [id, hold] of holds) {
    const over = hold.lapsesAt - lapseByNow(hold, now);
    if (over > 0) fail(`the hold of ${id}`, over);
  }
  for (const [id, leaseEnds] of Object.entries(leases)) {
    const over = leaseEnds - now - leaseMillis - keptMillisOf(id);
    if (over > 0 && renewed.get(id) !== leaseEnds) fail(`the lease of ${id}`, over);
  }
}
