import { overlaps } from '../faults/fault.js';
import type { Approval } from '../ledger.js';
import { WINDOW_MILLIS } from '../limits.js';
import type { Evidence } from './evidence.js';
import { keptMaxima } from './kept-limits.js';

/** A window in which more was approved than may be. */
export interface Overfull {
  readonly key: string;
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

/** Judges every window by what clients were told, and by the window in which Redis had approved it. */
export function judgeByRedis(evidence: Evidence): Judgement {
  return judge(evidence, (approval) => {
    const observed = evidence.account.approvals.get(approval.requestId);
    // A request that was approved again was told of the last approval.
    return observed?.findLast(({ at }) => at <= approval.endedAt)?.window.start;
  });
}

/**
 * Judges every window by those approvals that were asked for and told within it; of Redis's own account
 * it needs to know only when windows began.
 */
export function judgeByTimes(evidence: Evidence): Judgement {
  return judge(evidence, ({ key, sentAt, endedAt }) => {
    const starts = evidence.account.windowStarts.get(key) ?? [];
    const start = starts.findLast(({ at }) => at <= sentAt)?.start;
    if (start === undefined) return undefined;
    const windowStart = start + Math.floor((sentAt - start) / WINDOW_MILLIS) * WINDOW_MILLIS;
    const windowEnd = windowStart + WINDOW_MILLIS;
    const isWhole = endedAt < windowEnd;
    const hasNewStart = starts.some(
      (other) =>
        other.at > sentAt && other.start < windowEnd && (other.start - start) % WINDOW_MILLIS !== 0,
    );
    return isWhole && !hasNewStart ? windowStart : undefined;
  });
}

function judge(
  evidence: Evidence,
  windowOf: (approval: Approval) => number | undefined,
): Judgement {
  const { approvals, released } = evidence.ledger;
  const windows = new Map<string, { key: string; start: number; approved: number }>();
  for (const approval of approvals) {
    const start = windowOf(approval);
    if (start === undefined) continue;
    const id = `${approval.key} ${start}`;
    const window = windows.get(id) ?? { key: approval.key, start, approved: 0 };
    windows.set(id, window);
    // A release made room for another.
    if (!released.has(approval.requestId)) window.approved += 1;
  }
  const judged = [...windows.values()].map((window) => ({
    ...window,
    maximum: Math.max(
      evidence.maxima.highest(window.key, window.start, window.start + WINDOW_MILLIS),
      ...keptMaxima(evidence, window.key, window.start, window.start + WINDOW_MILLIS),
    ),
  }));
  const overfull = judged.filter(({ approved, maximum }) => approved > maximum);
  return {
    windows: windows.size,
    overfull: overfull.map((window) => ({ ...window, forgotBy: lossIn(evidence, window.start) })),
  };
}

function lossIn({ faults }: Evidence, start: number): string | undefined {
  return faults.find(
    (fault) => fault.loses !== undefined && overlaps(fault, start, start + WINDOW_MILLIS),
  )?.name;
}

export function describeOverfull({ key, start, approved, maximum }: Overfull): string {
  return `${key}: ${approved} approved in the window from ${start}, and not ${maximum}`;
}
