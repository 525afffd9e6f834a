import { periodAt } from '../declared/short-calendars.js';
import { lossesIn } from '../faults/fault.js';
import type { Approval } from '../ledger.js';
import type { CalendarName } from '../../../../src/limiter/calendar/calendar.js';
import {
  calendarOf,
  type LimitInForce as Limit,
  ownLimit,
} from '../../../../src/limiter/limits.js';
import { FURTHER, KEYS, LONGEST_REPORT_MILLIS, SHARE, WINDOW_MILLIS } from '../limits.js';
import type { LimitInForce, ObservedApproval } from '../../monitor/key-account.js';
import type { Evidence } from './evidence.js';
import { highestMaximum } from './kept-limits.js';
import { countsApproval, observedOf } from './observed-of.js';

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
  /** How many of the windows are days, weeks or months. */
  readonly periods: number;
  readonly overfull: readonly Overfull[];
}

/**
 * Judges every fixed window, those of calendars included, by what clients were told, and by the window in which Redis had
 * approved it.
 */
export function judgeByRedis(evidence: Evidence): Judgement {
  return judge(evidence, OWN, ({ window }) => window.start);
}

/** The same for the windows of each further limit. */
export function judgeFurtherByRedis(evidence: Evidence): Judgement {
  const judgements = [...FURTHER, SHARE].map((limit) =>
    judge(evidence, limit, ({ limits }) => limits.get(limit.name)),
  );
  return {
    windows: judgements.reduce((sum, { windows }) => sum + windows, 0),
    periods: judgements.reduce((sum, { periods }) => sum + periods, 0),
    overfull: judgements.flatMap(({ overfull }) => overfull),
  };
}

type JudgedLimit = Omit<Limit, 'maximum' | 'algorithm'>;

/** The own limit of each key. */
const OWN: JudgedLimit = ownLimit(WINDOW_MILLIS, 0);

/** A window in which Redis had given an approval. */
interface WindowOfApproval {
  /** Tells it from all other windows of the limit. */
  readonly id: string;
  readonly start: number;
  /** When it ends at the latest. */
  readonly end: number;
  readonly isPeriod: boolean;
}

interface JudgedWindow extends WindowOfApproval {
  readonly key: string;
  approved: number;
}

/** @param startOf the start of the window of an approval */
function judge(
  evidence: Evidence,
  limit: JudgedLimit,
  startOf: (observed: ObservedApproval) => number | undefined,
): Judgement {
  const windowOf = (approval: Approval): WindowOfApproval | undefined => {
    const observed = observedOf(evidence, approval);
    const inForce = observed?.inForce.get(limit.name);
    const start = observed && startOf(observed);
    if (start === undefined || inForce?.limit.algorithm.name !== 'fixed_window') return undefined;
    if (!countsApproval(evidence, inForce.limit, approval)) return undefined;
    const { key } = approval;
    const calendar = calendarOf(inForce.limit);
    const end = calendar ? periodAt(calendar, start).end : start + limit.windowMillis;
    return {
      id: [key, start, ...(calendar ? idOf(calendar, inForce) : [])].join(' '),
      start,
      end: end + (isReported(limit, key) ? LONGEST_REPORT_MILLIS : 0),
      isPeriod: calendar !== undefined,
    };
  };
  // The ledger makes these lists from all requests, each time that it is asked.
  const { approvals, released, corrected } = evidence.ledger;
  const ended: EndedEarly = { released, corrected };
  const { name } = limit;
  const windows = new Map<string, JudgedWindow>();
  for (const approval of approvals) {
    const inWindow = windowOf(approval);
    if (!inWindow) continue;
    const window = windows.get(inWindow.id) ?? { ...inWindow, key: approval.key, approved: 0 };
    windows.set(inWindow.id, window);
    window.approved += takenOf(ended, limit, approval, inWindow.end);
  }
  const heldOf = new Map<string, { approval: Approval; window: string | undefined }[]>();
  for (const approval of approvals) {
    if (approval.holdMillis === undefined || limit.keepsReleased) continue;
    const others = heldOf.get(approval.key) ?? [];
    heldOf.set(approval.key, others);
    others.push({ approval, window: windowOf(approval)?.id });
  }
  const judged = [...windows.values()].map((window) => {
    const { id, key, start, end, approved } = window;
    const heldBefore = (heldOf.get(key) ?? [])
      .filter(({ approval, window }) => approval.endedAt < start && window !== id)
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
    periods: [...windows.values()].filter(({ isPeriod }) => isPeriod).length,
    overfull: overfull.map(({ from, end, ...window }) => ({
      ...window,
      forgotBy: lossesIn(evidence.faults, from, end)[0]?.name,
    })),
  };
}

/**
 * What tells apart two windows of calendars with the same start. A further limit may get another kind, and its calendar again,
 * within one day. What the other kind has forgotten by then does not count any more.
 */
function idOf({ unit, timeZone }: CalendarName, { limit, countsSince }: LimitInForce): string[] {
  return [unit, timeZone, ...(limit.name === undefined ? [] : [String(countsSince)])];
}

/** Whether reports make the windows of a limit of a key longer. They are about the own limits of limited keys. */
export function isReported({ name }: Pick<Limit, 'name'>, key: string): boolean {
  return name === undefined && KEYS.limited.some((each) => each === key);
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
