import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { FrequentLog } from '../../common/frequent-log.js';
import type { Settings } from '../../config/settings.js';
import { UnavailableError } from '../../limiter/errors.js';
import {
  type CheckRequest,
  type Decision,
  isOverride,
  type Limiter,
  type Peek,
} from '../../limiter/limiter.js';
import { countsList, type LimitQuota } from '../../limiter/limits.js';
import type { QueueList } from '../../limiter/queue-order.js';
import type { FailureReason } from '../../metrics/check-metrics.js';
import type { Metrics } from '../../metrics/prometheus-metrics.js';
import type { KeyPolicy } from '../../rules/policy.js';
import type { Access } from '../callers/access.js';
import { denyingLimit, type NamedLimit } from '../denying-limit.js';
import { ServiceError } from '../errors.js';
import type { CountedKeys } from '../fleet/counted-keys.js';
import type { ConnectedRequest } from '../request-context.js';
import { type AskedCheck, type AskedPeek, inItsList } from './lists-of-checks.js';
import {
  rejectForbiddenHold,
  rejectForbiddenOverrides,
  rejectTooLongKeeping,
  rejectUnknownKey,
} from './parameter-rights.js';
import type { RecentDenials } from './recent-denials.js';

export interface DecideParts {
  /** What applies to a key as of now. */
  readonly policyOf: (key: string) => KeyPolicy;
  readonly limiter: Pick<Limiter, 'check'>;
  readonly metrics: Pick<Metrics, 'decided'>;
  readonly undecided: Pick<UndecidedChecks, 'record'>;
  readonly recentDenials: Pick<RecentDenials, 'record'>;
  readonly countedKeys: Pick<CountedKeys, 'record'>;
  readonly access: Pick<Access, 'demand' | 'withPlace'>;
  readonly settings: Pick<Settings, 'UNKNOWN_KEYS' | 'MAX_KEEP_MILLIS'>;
}

/** The decision on a check, and what applied to its key. */
export interface Decided<Made = Decision, Asked = AskedCheck> {
  readonly decision: Made;
  readonly policy: KeyPolicy;
  /** The limit that has denied the check, or would deny it, if its key has several. */
  readonly limit?: NamedLimit | undefined;
  /** As its caller has asked for it. */
  readonly check: Asked;
}

/** What a check would get, and what applies to its key. */
export type Peeked = Decided<Peek, AskedPeek>;

/**
 * Decides a check, and calls one of the callbacks, once. It does not throw, and the callbacks must not throw. A promise
 * for each step would cost a check a tenth of its time, and a bulk request more.
 * @param onFailed gets a ServiceError or what a limiter throws, if there is no decision
 */
export type DecideCheck = (
  check: AskedCheck,
  context: ConnectedRequest,
  onDecided: (decided: Decided) => void,
  onFailed: (error: unknown) => void,
) => void;

/** The one way of every check to its decision: a check alone, an element of a bulk request, a gateway's descriptor. */
export function checkDecider(parts: DecideParts): DecideCheck {
  const { policyOf, metrics, undecided, recentDenials, countedKeys, access, settings } = parts;
  /** Returns the check as the limiter gets it. Throws if it is not allowed. */
  const requestOf = (
    asked: AskedCheck,
    context: ConnectedRequest,
    policy: KeyPolicy,
  ): CheckRequest => {
    const check = asked.defaultMaxRequests === undefined ? asked : withDefault(asked, policy);
    if (isOverride(check)) access.demand('configure', context);
    rejectUnknownKey(policy, settings);
    rejectForbiddenOverrides(check, policy);
    rejectForbiddenHold(check, policy);
    rejectTooLongKeeping(check, policy, settings);
    const listed = inItsList(check, policy);
    const request = policy.deniedTakesRest ? { ...listed, takesRest: true } : listed;
    // A shadow rule lets everybody pass, so that nobody waits for it.
    const noWait = { canWait: false, keepMillis: undefined };
    return policy.isShadow ? { ...request, ...noWait } : request;
  };
  const record = (
    { decision, policy, limit }: Decided,
    { key, list, holdMillis }: CheckRequest,
    { startedAt, caller }: ConnectedRequest,
  ): void => {
    const millis = performance.now() - startedAt;
    const lane = list?.kind === 'lane' ? list.name : undefined;
    metrics.decided(decision, millis / 1000, policy, limit?.name, lane);
    countedKeys.record(key, decision, millis, holdMillis !== undefined);
    if (decision.outcome === 'denied') {
      recentDenials.record(key, decision.reason, policy, caller?.name, limit?.name);
    }
  };
  return (check, context, onDecided, onFailed) => {
    const fail = (error: unknown): void => {
      const reason = reasonOf(error);
      if (reason) undecided.record(reason);
      onFailed(error);
    };
    const policy = policyOf(check.key);
    let request: CheckRequest;
    let decision: Promise<Decision>;
    try {
      request = requestOf(check, context, policy);
      decision = ask(parts, request, context);
    } catch (error) {
      fail(error);
      return;
    }
    decision.then((made) => {
      let decided: Decided;
      try {
        const decision = withCountedLimits(made, request.list);
        const limit = denyingLimit(decision, policy, check.hits);
        decided = { decision, policy, limit, check };
        record(decided, request, context);
      } catch (error) {
        fail(error);
        return;
      }
      onDecided(decided);
    }, fail);
  };
}

/** Returns a check with its default for the maximum, if no rule has a maximum. */
function withDefault(
  { defaultMaxRequests, ...check }: AskedCheck,
  { hasRuledMaximum }: Pick<KeyPolicy, 'hasRuledMaximum'>,
): AskedCheck {
  const { maxRequests = defaultMaxRequests } = check;
  return hasRuledMaximum ? check : { ...check, maxRequests };
}

function ask(
  { limiter, access }: DecideParts,
  check: CheckRequest,
  context: ConnectedRequest,
): Promise<Decision> {
  if (!check.canWait) return limiter.check(check);
  return access.withPlace(context, check, (asked) =>
    context.whilePresent((client) => limiter.check(asked, client)),
  );
}

/** Why a check could not be decided; undefined for a fault and for a check that is rejected. */
function reasonOf(error: unknown): FailureReason | undefined {
  if (error instanceof UnavailableError) return error.reason;
  const isOverShare = error instanceof ServiceError && error.code === 'TOO_MANY_WAITERS_OF_CALLER';
  return isOverShare ? 'too_many_waiters_of_caller' : undefined;
}

/**
 * Returns a decision, or a peek, with the quota of the limits that count the check. A limit of other lanes can't have
 * denied it, and is none that its caller has to observe.
 */
export function withCountedLimits<Result extends Decision | Peek>(
  result: Result,
  list: QueueList | undefined,
): Result {
  const quota = 'quota' in result ? result.quota : undefined;
  if (!quota || quota.limits.every((limit) => countsList(limit, list))) return result;
  const [own, ...further] = quota.limits;
  const limits = [own, ...further.filter((limit: LimitQuota) => countsList(limit, list))] as const;
  return { ...result, quota: { ...quota, limits } };
}

/** Reasons with log lines of their own, about the loss of a store or the end of the service. */
const LOGGED_ELSEWHERE: ReadonlySet<FailureReason> = new Set([
  'store_unavailable',
  'shutting_down',
  'handed_over',
]);

/** Counts the checks that failed with a 503, and logs them: one line a second with the counts by reason. */
export class UndecidedChecks extends FrequentLog<FailureReason> {
  constructor(
    private readonly metrics: Pick<Metrics, 'failed'>,
    clock: Clock,
    logger: Logger,
  ) {
    super(clock, (undecided) => logger.warn({ undecided }, 'checks not decided'));
  }

  record(reason: FailureReason): void {
    this.metrics.failed(reason);
    if (!LOGGED_ELSEWHERE.has(reason)) this.note(reason);
  }
}
