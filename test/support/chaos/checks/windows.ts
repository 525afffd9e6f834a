import { lossesIn } from '../faults/fault.js';
import type { Approval } from '../ledger.js';
import { type Limit, ownLimit } from '../../../../src/limiter/limits.js';
import { FURTHER, KEYS, LONGEST_REPORT_MILLIS, WINDOW_MILLIS } from '../limits.js';
import type { ObservedApproval } from '../../monitor/key-account.js';
import type { Evidence } from './evidence.js';
import { highestMaximum } from './kept-limits.js';
import { observedOf } from './observed-of.js';

/** A window in which more was approved than may be. */
export interface Overfull {
  readonly key: string;
  /** The name of a further limit whose window it is. */
  readonly limit?: string;
  readonly start: number;
  readonly approved: number;
  /** The greatest maximum that was in force in it. */
  readonly maximum: number;
  /** What made Redis forget something in it, if anything did: then it could not know better. */
  readonly forgotBy: string | undefined;
}

export interface Judgement {
  readonly windows: number;
  readonly overfull: readonly Overfull[];
}

/** Judges every fixed window by what clients were told, and by the window in which Redis had approved it. */
export function judgeByRedis(evidence: Evidence): Judgement {
  return judge(evidence, OWN, ({ window }) => window.start);
}

/** The same for the windows of each further limit. */
export function judgeFurtherByRedis(evidence: Evidence): Judgement {
  const judgements = FURTHER.map((limit) =>
    judge(evidence, limit, ({ limits }) => limits.get(limit.name)),
  );
  return {
    windows: judgements.reduce((sum, { windows }) => sum + windows, 0),
    overfull: judgements.flatMap(({ overfull }) => overfull),
  };
}

type JudgedLimit = Omit<Limit, 'maximum' | 'algorithm'>;

/** The own limit of each key. */
const OWN: JudgedLimit = ownLimit(WINDOW_MILLIS, 0);

interface JudgedWindow {
  readonly key: string;
  readonly start: number;
  approved: number;
}

/** @param startOf the start of the window of an approval */
function judge(
  evidence: Evidence,
  limit: JudgedLimit,
  startOf: (observed: ObservedApproval) => number | undefined,
): Judgement {
  const windowOf = (approval: Approval): number | undefined => {
    const observed = observedOf(evidence, approval);
    const algorithm = observed?.inForce.get(limit.name)?.limit.algorithm;
    return observed && algorithm?.name === 'fixed_window' ? startOf(observed) : undefined;
  };
  // The ledger makes these lists from all requests, each time that it is asked.
  const { approvals, released, corrected } = evidence.ledger;
  const ended: EndedEarly = { released, corrected };
  const { name } = limit;
  const windows = new Map<string, JudgedWindow>();
  for (const approval of approvals) {
    const start = windowOf(approval);
    if (start === undefined) continue;
    const id = `${approval.key} ${start}`;
    const window = windows.get(id) ?? { key: approval.key, start, approved: 0 };
    windows.set(id, window);
    window.approved += takenOf(ended, limit, approval, latestEnd(limit, approval.key, start));
  }
  const heldOf = new Map<string, { approval: Approval; window: number | undefined }[]>();
  for (const approval of approvals) {
    if (approval.holdMillis === undefined || limit.keepsReleased) continue;
    const others = heldOf.get(approval.key) ?? [];
    heldOf.set(approval.key, others);
    others.push({ approval, window: windowOf(approval) });
  }
  const judged = [...windows.values()].map((window) => {
    const { key, start, approved } = window;
    const end = latestEnd(limit, key, start);
    const heldBefore = (heldOf.get(key) ?? [])
      .filter(({ approval, window }) => approval.endedAt < start && window !== start)
      .map(({ approval }) => approval);
    const before = heldBefore.map((approval) => takenOf(ended, limit, approval, end));
    return {
      key,
      ...(name !== undefined && { limit: name }),
      start,
      // Held approvals may exceed a maximum that was lowered. Then nobody is approved.
      approved: approved === 0 ? 0 : before.reduce((sum, taken) => sum + taken, approved),
      maximum: highestMaximum(evidence, key, name, start, end),
      from: Math.min(start, ...heldBefore.map(({ sentAt }) => sentAt)),
      end,
    };
  });
  const overfull = judged.filter(({ approved, maximum }) => approved > maximum);
  return {
    windows: windows.size,
    overfull: overfull.map(({ from, end, ...window }) => ({
      ...window,
      forgotBy: lossesIn(evidence.faults, from, end)[0]?.name,
    })),
  };
}

/** When a window ends at the latest. Reports make the windows of the own limits of limited keys longer. */
function latestEnd({ name, windowMillis }: JudgedLimit, key: string, start: number): number {
  const isReported = name === undefined && KEYS.limited.some((each) => each === key);
  return start + windowMillis + (isReported ? LONGEST_REPORT_MILLIS : 0);
}

/** The ids of approvals that were released, and of approvals that were corrected. */
type EndedEarly = Pick<Evidence['ledger'], 'released' | 'corrected'>;

/** What an approval takes of a window for as long as it lasts, at the least; 0 if it may make room for another. */
function takenOf(
  { released, corrected }: EndedEarly,
  { counts, keepsReleased }: JudgedLimit,
  { requestId, sentAt, hits = 1, holdMillis = Infinity }: Approval,
  windowEnd: number,
): number {
  const isReturned = released.has(requestId) || sentAt + holdMillis < windowEnd;
  if (isReturned && !keepsReleased) return 0;
  if (counts === 'requests') return 1;
  return corrected.has(requestId) ? 0 : hits;
}

export function describeOverfull({ key, limit, start, approved, maximum }: Overfull): string {
  const of = limit === undefined ? '' : ` of ${limit}`;
  return `${key}: ${approved} approved in the window${of} from ${start}, and not ${maximum}`;
}
