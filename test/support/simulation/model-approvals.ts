import type { Limit } from '../../../src/limiter/limits.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { Approvals } from '../../../src/limiter/memory/approvals.js';
import type { CountedLimit } from '../../../src/limiter/memory/limits/counted-limit.js';
import { FixedWindow } from '../../../src/limiter/memory/limits/fixed-window.js';
import type { StoredReport } from '../stored-counts.js';
import { reportsOf, type StoredState } from '../stored-state.js';
import { listOf } from '../stored-queue.js';
import { idOf, uuidOf } from './model-ids.js';
import type { Snapshot } from './snapshot.js';

const OTHER = uuidOf('?');

/**
 * Gives a key of the embedded limiter the approvals that Redis has stored, but for those in limits that are no fixed
 * windows: `restoreLimits` gives it these.
 * @param approvals of a key with its own limit, of which there are none
 * @param further limits, whose maxima are more than approvals take
 */
export function restoreApprovals(
  approvals: Approvals,
  stored: Snapshot & { readonly state: StoredState },
  further: readonly Limit[],
): void {
  const { state } = stored;
  if (state.released > 0) {
    approvals.add(state.released, OTHER, {});
    approvals.release(state.released, OTHER, true);
  }
  const [ofOwn, ...ofFurther] = reportsOf(state);
  restoreReport(approvals.own, ofOwn);
  for (const [i, { start }] of state.further.entries()) {
    approvals.takeFurther(start, further.slice(0, i + 1));
    // Before the next limit, which may have begun when this window would have ended without the report.
    restoreReport(approvals.limits[i + 1]!, ofFurther[i]);
  }
  restoreHolds(approvals, stored);
  const used = [state.approved, ...state.further.map(({ taken }) => taken)];
  const counts = [state.stored, ...state.further.map((limit) => limit.stored)];
  for (const [i, limit] of approvals.limits.entries()) {
    if (counts[i]) continue;
    const ids = i === 0 ? stored.requests : stored.limits.get(state.further[i - 1]!.name);
    for (const [id, hits] of ids ?? []) {
      // One with no hits was corrected.
      limit.take(uuidOf(id), 1, false);
      limit.reserve(uuidOf(id), hits);
      limit.amend(uuidOf(id), hits);
    }
    if (limit.used > used[i]!) limit.refund(limit.used - used[i]!);
    // Approvals of which Redis does not know the ids, as of a key that was restored.
    for (let n = 0; limit.used < used[i]!; n += 1) {
      limit.take(uuidOf(`?${n}`), used[i]! - limit.used, false);
    }
  }
}

/** @param limit of which nothing counts */
function restoreReport(limit: CountedLimit, report: StoredReport | undefined): void {
  if (!report || !(limit instanceof FixedWindow)) return;
  const { surplus, floor, until } = report;
  // Meanwhile, as much counts as leaves the surplus missing from the floor.
  limit.carry(floor - surplus);
  limit.report(0, { remaining: limit.maximum - floor, resetMillis: until });
  limit.carry(surplus - floor);
}

/** Also of approvals that have lapsed, whose waiters are put back. */
function restoreHolds(approvals: Approvals, { state, holds, records }: Snapshot): void {
  const hold = (id: string, now: number, hits: number, millis: number, list?: QueueList): void => {
    const record = records.get(idOf(id));
    if (record?.state === 'unclaimed') {
      const { holdMillis } = record;
      approvals.addWaiter(now, { requestId: id, hits, holdMillis, list, keepMillis: millis });
    } else {
      approvals.add(now, id, { hits, holdMillis: millis, list });
    }
    for (const limit of approvals.limits) limit.giveBack(id, true);
  };
  for (const [id, { lapsesAt, millis, hits, lane }] of holds) {
    const list = lane === undefined ? undefined : listOf(`lane:${lane}`, 0);
    hold(uuidOf(id), lapsesAt - millis, hits, millis, list);
  }
  if (!state?.holds || holds.size === 0) return;
  // The first of them may have been released, which leaves the time of the first lapse as it was.
  hold(OTHER, state.holds.firstLapse - 1, 1, 1);
  approvals.holds?.release(OTHER);
}
