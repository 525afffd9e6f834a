import type { Limiter, RejectedReport, Remaining, RemainingReport } from '../../limiter/limiter.js';
import { DEFAULT_NAME } from '../../rules/rule.js';
import type { RequestContext } from '../request-context.js';
import { invalidParameter, type ServiceError } from '../service-error.js';
import { demandPauseRight, type PauseRights } from './pause-key.js';

interface ReportParts extends PauseRights {
  readonly limiter: Pick<Limiter, 'reportRemaining'>;
}

/**
 * Takes a vendor's report of how much remains of a limit.
 * @param report as for `Limiter.reportRemaining`; the limit `default` is the key's own
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
    const reported = await limiter.reportRemaining(key, { ...report, limit });
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
