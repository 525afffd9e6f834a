import {
  type Algorithm,
  capacityOf,
  type LimitInForce,
  takenOf,
} from '../../../../src/limiter/limits.js';
import { lossesIn } from '../faults/fault.js';
import { limitOf } from '../limits.js';
import type { Evidence } from './evidence.js';
import { highestMaximum } from './kept-limits.js';
import { countsApproval, observedOf } from './observed-of.js';

/** What a bucket approves besides where waiters are served, as a part of its rate: docs/how-it-works.md. */
export const CREDIT_MILLIS = 30;
/** What the rounding of doubles may add up to. */
const EPSILON = 1e-6;

/** A span of time in which more was approved than may be. Times are milliseconds since 1970. */
export interface OverfullSpan {
  readonly key: string;
  readonly limit: LimitInForce;
  /** When Redis gave the first of the approvals, and the last one. */
  readonly from: number;
  readonly to: number;
  readonly approved: number;
  readonly most: number;
  /** What made Redis forget something in it, if anything did: then it could not know better. */
  readonly forgotBy: string | undefined;
}

export interface SpanJudgement {
  /** How many approvals were judged, with those before them. */
  readonly approvals: Readonly<Record<JudgedName, number>>;
  readonly overfull: readonly OverfullSpan[];
}

/** What an approval takes of one limit. */
interface Taken {
  readonly key: string;
  readonly sentAt: number;
  /** When Redis gave it. */
  readonly at: number;
  readonly isFromQueue: boolean;
  readonly limit: LimitInForce;
  /** Nothing counts any more that was approved before. */
  readonly since: number;
  readonly taken: number;
  /** It may have given some back from then on: it may be released or corrected. */
  readonly changedAt: number;
  /** When its hold may lapse, if it is held; infinite if it is not. */
  readonly lapsesAt: number;
}

type JudgedName = Exclude<Algorithm['name'], 'fixed_window'>;
type Judge = (evidence: Evidence, approvals: readonly Taken[]) => OverfullSpan[];

/**
 * Judges sliding windows and token buckets by what clients were told, and by when and by which limits Redis had approved
 * it. Approvals by another algorithm do not count, since a change of the algorithm may forget what they take.
 */
export function judgeSpansByRedis(evidence: Evidence): SpanJudgement {
  const sliding = approvalsOf(evidence, 'sliding_window');
  const buckets = approvalsOf(evidence, 'token_bucket');
  const judgeAll = (judge: Judge, ofLimits: readonly (readonly Taken[])[]): OverfullSpan[] =>
    ofLimits.flatMap((approvals) => judge(evidence, approvals));
  return {
    approvals: { sliding_window: sliding.flat().length, token_bucket: buckets.flat().length },
    overfull: [...judgeAll(overfullWindows, sliding), ...judgeAll(overfullBuckets, buckets)],
  };
}

export function describeSpan({ key, limit, from, to, approved, most }: OverfullSpan): string {
  return (
    `${limitOf(key, limit.name)}: ${approved} approved from ${from} to ${to}, ` +
    `and not ${most}, by ${JSON.stringify(limit)}`
  );
}

/** The approvals of each limit with an algorithm, in Redis's order. */
function approvalsOf(evidence: Evidence, algorithm: JudgedName): Taken[][] {
  // The ledger makes these from all requests, each time that it is asked.
  const { approvals, released, corrected } = evidence.ledger;
  const byLimit = new Map<string, Taken[]>();
  for (const approval of approvals) {
    const observed = observedOf(evidence, approval);
    // Of a renewal it is not known when it was approved.
    if (!observed || observed.mayBeRenewal) continue;
    const { key, requestId, sentAt, hits = 1, holdMillis = Infinity } = approval;
    for (const { limit, since } of observed.inForce.values()) {
      if (limit.algorithm.name !== algorithm || !countsApproval(evidence, limit, approval))
        continue;
      const name = limitOf(key, limit.name);
      const others = byLimit.get(name) ?? [];
      byLimit.set(name, others);
      const releasedAt = limit.keepsReleased ? undefined : released.get(requestId);
      const correctedAt = limit.counts === 'hits' ? corrected.get(requestId) : undefined;
      others.push({
        ...{ key, sentAt, at: observed.at, isFromQueue: observed.isFromQueue, limit, since },
        taken: takenOf(limit, hits),
        changedAt: Math.min(releasedAt ?? Infinity, correctedAt ?? Infinity),
        lapsesAt: Math.floor(observed.at) + (limit.keepsReleased ? Infinity : holdMillis),
      });
    }
  }
  return [...byLimit.values()].map((ofLimit) => ofLimit.sort((a, b) => a.at - b.at));
}

/** The spans of a sliding window's length, up to an approval, that have more than the maximum by which it was given. */
function overfullWindows({ faults }: Evidence, approvals: readonly Taken[]): OverfullSpan[] {
  let counting: Taken[] = [];
  return approvals.flatMap((last) => {
    const { key, at, limit, since } = last;
    counting = counting.filter((each) => each.at >= since && countsUntil(each) > at);
    counting.push(last);
    const approved = counting.reduce((sum, { taken }) => sum + taken, 0);
    if (approved <= limit.maximum) return [];
    const from = Math.min(...counting.map((each) => each.at));
    const sentFrom = Math.min(...counting.map(({ sentAt }) => sentAt));
    const forgotBy = lossesIn(faults, sentFrom, at)[0]?.name;
    return [{ key, limit, from, to: at, approved, most: limit.maximum, forgotBy }];
  });
}

/** Until when an approval of a sliding window counts at least. A held one counts as long as it is held. */
function countsUntil({ at, limit, changedAt, lapsesAt }: Taken): number {
  return Math.min(changedAt, lapsesAt === Infinity ? at + limit.windowMillis : lapsesAt);
}

/**
 * The spans that have more than the burst, what drains of the bucket in them, and the credit. A bucket with this level,
 * which drains at the highest rate that may have been in force, is full at the end of such a span.
 */
function overfullBuckets(evidence: Evidence, approvals: readonly Taken[]): OverfullSpan[] {
  const creditMillis = approvals.some(({ isFromQueue }) => isFromQueue) ? CREDIT_MILLIS : 0;
  let level = 0;
  let first: Taken | undefined;
  let before: Taken | undefined;
  return approvals.flatMap((last) => {
    const { key, at, limit, since, taken } = last;
    const earlier = before && before.at >= since ? before : undefined;
    const highest = highestMaximum(evidence, key, limit.name, earlier?.at ?? at, at);
    const perMilli =
      Math.max(limit.maximum, earlier?.limit.maximum ?? 0, highest) / limit.windowMillis;
    level = earlier ? Math.max(0, level - perMilli * (at - earlier.at)) : 0;
    if (level === 0 || !first) first = last;
    before = last;
    const approved = level + taken;
    const most = capacityOf(limit) + creditMillis * perMilli;
    level = Math.min(most, level + leastTaken(last));
    if (approved <= most + EPSILON) return [];
    const forgotBy = lossesIn(evidence.faults, first.sentAt, at)[0]?.name;
    return [{ key, limit, from: first.at, to: at, approved, most, forgotBy }];
  });
}

/** What an approval of a bucket takes at least: what had drained of it cannot be given back. */
function leastTaken({ at, limit, taken, changedAt }: Taken): number {
  const drained = (limit.maximum / limit.windowMillis) * Math.max(0, changedAt - at);
  return Math.min(taken, changedAt === Infinity ? taken : drained);
}
