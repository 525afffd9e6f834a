import type {
  Operator,
  RejectedReport,
  Remaining,
  RemainingReport,
} from '../../limiter/limiter.js';
import { DEFAULT_NAME } from '../../rules/rule.js';
import type { Access } from '../callers/access.js';
import { invalidParameter, type ServiceError } from '../errors.js';
import type { RequestContext } from '../request-context.js';
import { type AskedRefund, inItsList } from './lists-of-checks.js';
import { type KeyRules, rejectUnknownKey } from './parameter-rights.js';

interface PauseParts extends PauseRights {
  readonly limiter: Operator<'pause'>;
}

/** How a key is to be paused; see `Operations`. */
export interface AskedPause {
  readonly pauseMillis: number;
  readonly canShorten?: boolean | undefined;
}

/** What says who may pause keys. */
interface PauseRights extends KeyRules {
  readonly access: Pick<Access, 'demand'>;
}

/**
 * Pauses a key.
 * @returns how many milliseconds it is paused for
 * @throws ServiceError SCOPE_MISSING if neither the caller's scopes nor the key's rules allow it, KEY_UNKNOWN as for a
 *   check
 */
export type Pause = (key: string, asked: AskedPause, context: RequestContext) => Promise<number>;

export function pauseBy({ limiter, ...rights }: PauseParts): Pause {
  return async (key, { pauseMillis, canShorten }, context) => {
    demandPauseRight(key, rights, context);
    return limiter.ask('pause', { key, millis: pauseMillis, canShorten });
  };
}

/**
 * A rule may let callers with only the scope `check` pause its keys, and report what remains of their limits.
 * @throws ServiceError as a pause
 */
function demandPauseRight(
  key: string,
  { policyOf, access, settings }: PauseRights,
  context: RequestContext,
): void {
  const policy = policyOf(key);
  if (!policy.requestsCanPause) access.demand('configure', context);
  rejectUnknownKey(policy, settings);
}

interface RefundParts extends KeyRules {
  readonly limiter: Operator<'refund'>;
}

/**
 * Gives hits back without the approvals that took them, as far as the limits of the key are fixed windows.
 * @throws ServiceError as for a check
 */
export type Refund = (asked: AskedRefund) => Promise<void>;

export function refundBy({ limiter, policyOf, settings }: RefundParts): Refund {
  return async (asked) => {
    const policy = policyOf(asked.key);
    rejectUnknownKey(policy, settings);
    await limiter.ask('refund', inItsList(asked, policy));
  };
}

interface ReportParts extends PauseRights {
  readonly limiter: Operator<'reportRemaining'>;
}

/**
 * Takes a vendor's report of how much remains of a limit.
 * @param report as for the operation; the limit `default` is the key's own
 * @returns how much is left of the limit now
 * @throws ServiceError INVALID_PARAMETER if the key has no such limit or it is no fixed window; as a pause
 */
export type ReportRemaining = (
  key: string,
  report: RemainingReport,
  context: RequestContext,
) => Promise<Remaining>;

/** Returns a function that takes reports. A caller that may pause a key may also report what remains of its limits. */
export function reportRemainingBy({ limiter, ...rights }: ReportParts): ReportRemaining {
  return async (key, report, context) => {
    demandPauseRight(key, rights, context);
    const limit = report.limit === DEFAULT_NAME ? undefined : report.limit;
    const reported = await limiter.ask('reportRemaining', { key, ...report, limit });
    if ('rejected' in reported) throw rejectionOf(reported, limit);
    return reported;
  };
}

function rejectionOf(rejected: RejectedReport, limit = DEFAULT_NAME): ServiceError {
  const must =
    rejected.rejected === 'limit'
      ? `be one of the limits of the key: ${[DEFAULT_NAME, ...rejected.further].join(', ')}`
      : `name a fixed window; ${limit} is a ${rejected.algorithm}`;
  return invalidParameter('limit', must);
}
