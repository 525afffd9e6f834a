import {
  type RequestIdConflict,
  RequestIdConflictError,
  StoreFullError,
  StoreUnavailableError,
  UnavailableError,
} from '../../limiter/errors.js';
import type { Decision, DenialReason, Quota } from '../../limiter/limiter.js';
import { forEachLimit } from '../../limiter/limits.js';
import type { QueueList } from '../../limiter/queue-order.js';
import { type BatchedCheck, type CheckBatchReply, VERDICT } from '../scripts/check-codec.js';

/** What Redis says of one check. */
export interface CheckReply extends Pick<CheckBatchReply, 'quota' | 'millisToRoom' | 'queueState'> {
  /** One of `VERDICT`, or the ticket of the place in the queue. */
  readonly verdict: number;
  /** Of a place that the check has taken over. */
  readonly place?: { readonly list: QueueList | undefined } | undefined;
}

/** A check on its way to Redis. */
export interface PendingCheck extends BatchedCheck {
  readonly onReply: (reply: CheckReply) => void;
  readonly onFailed: (error: Error) => void;
}

/** Whether a hold that began while a call took so long may have lapsed, as after this process has stood still. */
export function mayHaveLapsed(
  { holdMillis }: { readonly holdMillis?: number | undefined },
  tookMillis: number,
): boolean {
  return holdMillis !== undefined && tookMillis >= holdMillis;
}

/** The caller must not take the approval for one that is held. */
export function lapsedBeforeAnswer(): StoreUnavailableError {
  const cause = new Error('the answer of Redis came when the hold might have lapsed');
  return new StoreUnavailableError({ cause, mayHaveRun: true });
}

export function failBatch(checks: readonly PendingCheck[], error: Error): void {
  for (const check of checks) check.onFailed(error);
}

/**
 * Tells each check of a batch what Redis said.
 * @param reply undefined if it said nothing
 * @param tookMillis from the sending of the call to its answer
 */
export function answerBatch(
  checks: readonly PendingCheck[],
  reply: CheckBatchReply | Error | undefined,
  tookMillis: number,
): void {
  if (reply === undefined || reply instanceof Error) {
    failBatch(checks, reply ?? unanswered());
    return;
  }
  const { millisToRoom, queueState, verdicts, listsOfPlaces, quota: quotaAfter } = reply;
  const ofGroups = reply.quotaOf && new LeftOfGroups(checks, verdicts, reply.quotaOf);
  let hitsLeft = 0;
  let approvalsLeft = 0;
  for (let i = 0; i < checks.length; i += 1) {
    if (verdicts[i] !== VERDICT.approved) continue;
    hitsLeft += checks[i]?.request.hits ?? 1;
    approvalsLeft += 1;
  }
  // One object for all checks with the same quota, so that their headers are built once.
  let quota: Quota | undefined;
  for (let i = 0; i < checks.length; i += 1) {
    const verdict = verdicts[i];
    if (verdict === undefined) {
      checks[i]?.onFailed(unanswered());
      continue;
    }
    if (verdict === VERDICT.storeFull) {
      checks[i]?.onFailed(new StoreFullError());
      continue;
    }
    if (verdict === VERDICT.approved) {
      hitsLeft -= checks[i]?.request.hits ?? 1;
      approvalsLeft -= 1;
      quota = undefined;
    }
    quota ??= before(quotaAfter, hitsLeft, approvalsLeft);
    const check = checks[i];
    if (verdict === VERDICT.approved && check && mayHaveLapsed(check.request, tookMillis)) {
      check.onFailed(lapsedBeforeAnswer());
      continue;
    }
    const place = listsOfPlaces?.has(i) ? { list: listsOfPlaces.get(i) } : undefined;
    const itsQuota = ofGroups && check ? ofGroups.add(quota, check, verdict) : quota;
    check?.onReply({ verdict, quota: itsQuota, millisToRoom, queueState, place });
  }
}

/** What groups have left after each of some checks, in their order. */
class LeftOfGroups {
  /** The hits and the number of the approvals that follow, by group. */
  readonly #later = new Map<string, { hits: number; approvals: number }>();

  constructor(
    checks: readonly PendingCheck[],
    verdicts: readonly number[],
    private readonly quotaOf: NonNullable<CheckBatchReply['quotaOf']>,
  ) {
    for (const [i, check] of checks.entries()) this.#count(check, verdicts[i], 1);
  }

  /** Adds the limits of the group of a check, which is the next one, to the quota of its key. */
  add(quota: Quota, check: PendingCheck, verdict: number): Quota {
    this.#count(check, verdict, -1);
    const { list } = check.request;
    const { limits, groupPausedMillis } = this.quotaOf(list);
    const [first, ...others] = limits.slice(quota.limits.length);
    if (!list) return quota;
    const { hits, approvals } = this.#later.get(list.name) ?? { hits: 0, approvals: 0 };
    const ofGroup = first ? before({ limits: [first, ...others] }, hits, approvals).limits : [];
    return { limits: [...quota.limits, ...ofGroup], groupPausedMillis };
  }

  #count({ request: { list, hits = 1 } }: PendingCheck, verdict: number | undefined, sign: 1 | -1) {
    if (!list || verdict !== VERDICT.approved) return;
    const later = this.#later.get(list.name) ?? { hits: 0, approvals: 0 };
    this.#later.set(list.name, {
      hits: later.hits + sign * hits,
      approvals: later.approvals + sign,
    });
  }
}

/** A quota as it was before this number of approvals, with these hits. */
function before(quota: Quota, hits: number, approvals: number): Quota {
  if (approvals === 0) return quota;
  return {
    // A spread takes longer.
    limits: forEachLimit(quota.limits, (limit) => ({
      name: limit.name,
      windowMillis: limit.windowMillis,
      maximum: limit.maximum,
      algorithm: limit.algorithm,
      counts: limit.counts,
      keepsReleased: limit.keepsReleased,
      remaining: limit.remaining + (limit.counts === 'hits' ? hits : approvals),
      resetMillis: limit.resetMillis,
    })),
  };
}

function unanswered(): Error {
  return new Error('check.lua left a check unanswered');
}

const REASONS: ReadonlyMap<number, DenialReason> = new Map([
  [VERDICT.queueFull, 'queue_full'],
  [VERDICT.queueFullOfGroup, 'queue_full_of_group'],
  [VERDICT.tooManyHits, 'too_many_hits'],
  [VERDICT.paused, 'paused'],
  [VERDICT.waitExpired, 'wait_expired'],
]);

const CONFLICTS: ReadonlyMap<number, RequestIdConflict> = new Map([
  [VERDICT.idUsed, 'used'],
  [VERDICT.otherHits, 'other_hits'],
  [VERDICT.otherHold, 'other_hold'],
  [VERDICT.otherHolder, 'other_holder'],
  [VERDICT.takenOver, 'taken_over'],
]);

/** The decision on a check that was neither approved nor queued; an error if it could neither be denied nor wait. */
export function denial({
  verdict,
  quota,
}: CheckReply): Decision | UnavailableError | RequestIdConflictError {
  const conflict = CONFLICTS.get(verdict);
  if (conflict) return new RequestIdConflictError(conflict);
  if (verdict === VERDICT.noPlace) return new UnavailableError('too_many_waiters');
  if (verdict === VERDICT.keyFull) return new UnavailableError('key_full');
  if (verdict <= VERDICT.turnTooLate) {
    const turnMillis = (VERDICT.turnTooLate - verdict) / 1000;
    return { outcome: 'denied', reason: 'turn_too_late', quota, turnMillis };
  }
  return { outcome: 'denied', reason: REASONS.get(verdict) ?? 'limit_reached', quota };
}
