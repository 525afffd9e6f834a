import { idleAt } from '../stored-state.js';
import { Violation } from './violation.js';
import type { Snapshot } from './snapshot.js';

/** A hold as far as its length counts. */
interface TimedHold {
  readonly lapsesAt: number;
  readonly millis: number;
}

/** When a hold lapses if it lasts no longer than it was set for from now on. */
export function lapseByNow({ lapsesAt, millis }: TimedHold, now: number): number {
  return Math.min(lapsesAt, now + millis);
}

/**
 * What was stored before Redis's clock went back, as the first call after the step has to take it: windows that begin in
 * the future begin now with what was approved in them, and no hold lasts longer than its length from now on.
 */
export function byNow(stored: Snapshot, now: number): Snapshot {
  const { state, holds } = stored;
  if (!state) return stored;
  const start = Math.min(state.start, now);
  const further = state.further.map((limit) => ({ ...limit, start: Math.min(limit.start, now) }));
  const isMoved =
    start < state.start || further.some((limit, i) => limit.start < state.further[i]!.start);
  const expires = isMoved
    ? Math.min(state.expires, idleAt({ start, window: state.window, further }))
    : state.expires;
  return {
    ...stored,
    state: { ...state, start, further, expires },
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
  if (state.start > now) fail('the window', state.start - now);
  for (const { name, start } of state.further) {
    if (start > now) fail(`the window of ${name}`, start - now);
  }
  for (const [id, hold] of holds) {
    const over = hold.lapsesAt - lapseByNow(hold, now);
    if (over > 0) fail(`the hold of ${id}`, over);
  }
  for (const [replica, leaseEnds] of Object.entries(leases)) {
    const over = leaseEnds - now - leaseMillis;
    if (over > 0 && renewed.get(replica) !== leaseEnds) fail(`the lease of ${replica}`, over);
  }
}
