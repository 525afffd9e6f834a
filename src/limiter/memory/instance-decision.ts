import { RequestIdConflictError, StoreFullError, UnavailableError } from '../errors.js';
import type { Decision, Quota, RejectedReport, RemainingReport } from '../limiter.js';
import { forEachLimit, type Limits } from '../limits.js';
import type { QueueList } from '../queue-order.js';
import { claimOf, type OtherTerm, type RequestTerms } from '../request.js';
import type { Approvals } from './approvals.js';
import type { WaitingQueue } from './queue/waiting-queue.js';
import type { Turns } from './turns.js';
import { kindOf } from '../kinds/kinds.js';

/** What becomes of a check that does not wait. */
type DecisionAtOnce = 'approved' | 'denied' | 'too_many_hits' | 'paused' | 'key_full';

type RefusalToWait = NonNullable<ReturnType<Turns['refusalToWait']>>;

/** What an instance makes of a check of a new request. */
export type InstanceDecision = DecisionAtOnce | RefusalToWait | 'store_full' | 'waiting';

/** What it makes of a check by the record of its request id. */
export type RecordDecision =
  /** It has taken over the place of an earlier check with its request id. */
  | 'takes_over'
  /** It can't wait, so that the place of the earlier check with its request id was withdrawn. */
  | 'wait_expired'
  | 'used'
  | OtherTerm;

/**
 * Returns what the caller of a check that does not wait is told.
 * @param told `number` is the number of the check's claim, if its caller has chosen the request id; `turnMillis` is until
 *   its turn would have come, if that is too late
 * @throws UnavailableError, StoreFullError or RequestIdConflictError if the check could not be decided
 */
export function decisionOf(
  decision: Exclude<InstanceDecision | RecordDecision, 'waiting' | 'takes_over'>,
  told: {
    readonly requestId: string;
    readonly number: number | undefined;
    readonly quota: Quota;
    readonly turnMillis: number;
  },
): Decision {
  const { requestId, number, quota, turnMillis } = told;
  switch (decision) {
    case 'approved':
      return { outcome: 'approved', requestId, claim: claimOf(requestId, number), quota };
    case 'denied':
      return { outcome: 'denied', reason: 'limit_reached', quota };
    case 'queue_full':
    case 'queue_full_of_group':
    case 'too_many_hits':
    case 'paused':
    case 'wait_expired':
      return { outcome: 'denied', reason: decision, quota };
    case 'turn_too_late':
      return { outcome: 'denied', reason: 'turn_too_late', quota, turnMillis };
    case 'no_place':
      throw new UnavailableError('too_many_waiters');
    case 'key_full':
      throw new UnavailableError('key_full');
    case 'store_full':
      throw new StoreFullError();
    default:
      throw new RequestIdConflictError(decision);
  }
}

/** Returns what the limits have left that count the checks of a list, as of the last operation. */
export function quotaOf(
  now: number,
  { limits, groups }: Approvals,
  pausedUntil: number,
  list: QueueList | undefined,
): Quota {
  const quota = forEachLimit(limits, (limit) => limit.quota(now, pausedUntil));
  if (list?.kind !== 'group' || !groups) return { limits: quota };
  const ofGroup = groups.quotaOf(now, list.name, pausedUntil);
  return { ...ofGroup, limits: [...quota, ...ofGroup.limits] };
}

/** Returns what becomes of a check that does not wait. */
export function decideAtOnce(
  now: number,
  terms: RequestTerms,
  approvals: Approvals,
  queue: WaitingQueue,
  isKeyPaused: boolean,
): DecisionAtOnce {
  const { hits = 1 } = terms;
  const isGroupPaused = approvals.isPaused(terms);
  const fits = approvals.fit(terms) && !isGroupPaused;
  const areFull = approvals.areFull(terms) || approvals.isFullForGroup(terms);
  const hasRoom = fits && !areFull && !isKeyPaused;
  const isNext = (): boolean =>
    queue.isNext(now, terms, (head) => approvals.stoppedBy(head) ?? 'all');
  if (hasRoom && (queue.size === 0 || isNext())) return 'approved';
  if (hits > 1 && approvals.exceed(terms)) return 'too_many_hits';
  if (areFull && fits) return 'key_full';
  return isKeyPaused || isGroupPaused ? 'paused' : 'denied';
}

/**
 * Why a key with these limits can't take a report.
 * @returns undefined if it can
 */
export function rejectionOf(
  limits: Limits,
  { limit: wanted, group }: Pick<RemainingReport, 'limit' | 'group'>,
): RejectedReport | undefined {
  const known = limits.filter(({ perGroup }) => group !== undefined || !perGroup);
  const limit = known.find(({ name }) => name === wanted);
  if (!limit) return { rejected: 'limit', further: known.flatMap(({ name = [] }) => name) };
  const { algorithm } = limit;
  return kindOf(algorithm).hasBoundary
    ? undefined
    : { rejected: 'algorithm', algorithm: algorithm.name };
}
