import type {
  Amended,
  Amendment,
  Asked,
  Limiter,
  Remaining,
  RemainingReport,
} from '../limiter/limiter.js';
import type { KeyPolicy } from '../rules/policy.js';
import { DEFAULT_NAME } from '../rules/rule.js';
import type { Tracer } from '../tracing/sdk/otel-tracer.js';
import type { Access } from './callers/access.js';
import {
  checkDecider,
  type DecideParts,
  type Peeked,
  withCountedLimits,
} from './deciding/decide-check.js';
import {
  type AskedPeek,
  type AskedRefund,
  groupOfReport,
  inItsList,
} from './deciding/lists-of-checks.js';
import {
  rejectForbiddenHold,
  rejectForbiddenRenewal,
  rejectionOfAmendment,
  rejectionOfReport,
  rejectUnknownKey,
} from './deciding/parameter-rights.js';
import type { Slices } from './deciding/slices.js';
import { inBulkSpan, inSpan, tracedDecider } from './deciding/traced-decisions.js';
import { denyingLimit } from './denying-limit.js';
import type { Fleet } from './fleet/fleet.js';
import type { RequestContext } from './request-context.js';

export interface ServiceParts extends DecideParts {
  readonly limiter: Limiter;
  /** The limiter without what decides in an outage of its store. */
  readonly store: Limiter;
  readonly fleet: Fleet;
  readonly access: Access;
  /** Shared by bulk requests and gRPC calls. */
  readonly slices: Slices;
  /** Undefined if requests are not traced. */
  readonly tracer?: Tracer | undefined;
}

/** What requests over HTTP and calls over gRPC ask for. It knows neither. */
export type Service = ReturnType<typeof createService>;

export function createService(parts: ServiceParts) {
  const { limiter, store, policyOf, access, fleet, slices, settings, tracer } = parts;
  const decide = checkDecider(parts);

  /** @throws ServiceError KEY_UNKNOWN as for a check */
  const policyOfKnown = (key: string): KeyPolicy => {
    const policy = policyOf(key);
    rejectUnknownKey(policy, settings);
    return policy;
  };

  /**
   * A rule may let callers with only the scope `check` pause its keys, and report what remains of their limits.
   * @throws ServiceError SCOPE_MISSING if neither the caller's scopes nor the key's rules allow it, KEY_UNKNOWN as for a
   *   check
   */
  const demandPauseRight = (key: string, context: RequestContext): void => {
    if (!policyOf(key).requestsCanPause) access.demand('configure', context);
    policyOfKnown(key);
  };

  return {
    ...{ limiter, store, policyOf, access, fleet, slices },
    decide: tracer ? tracedDecider(decide, tracer) : decide,

    /**
     * Says what a check would get. It is no decision: no metric counts it, and it has no span.
     * @throws ServiceError as for a check; as the operation
     */
    peek: async (asked: AskedPeek): Promise<Peeked> => {
      const policy = policyOfKnown(asked.key);
      rejectForbiddenHold(asked, policy);
      const request = inItsList(asked, policy);
      const decision = withCountedLimits(await limiter.ask('peek', request), request.list);
      return { decision, policy, limit: denyingLimit(decision, policy, asked.hits), check: asked };
    },

    /** Releases an approval, of a release alone or of a bulk request. @returns as the operation */
    release: (key: string, requestId: string, context: RequestContext): Promise<boolean> =>
      inSpan('release', tracer, context, (trace) =>
        limiter.ask('release', { key, requestId, trace }),
      ),

    /**
     * Changes an approval, and renews its hold if the key's policy still allows it.
     * @returns undefined as the operation
     * @throws ServiceError if the key's policy forbids the hits or the hold, SCOPE_MISSING if the caller may not release
     */
    amend: (
      key: string,
      requestId: string,
      amendment: Amendment,
      context: RequestContext,
    ): Promise<Amended | undefined> =>
      inSpan('amend', tracer, context, async (trace) => {
        const policy = policyOf(key);
        // It gives back everything, as a release does.
        if (amendment.hits === 0) access.demand('release', context);
        rejectForbiddenRenewal(amendment, policy);
        const bounds = {
          maxHits: policy.maxCorrectedHits,
          maxHoldMillis: policy.requestsCanHold ? policy.maxHoldMillis : 0,
        };
        const asked = { key, requestId, ...amendment, ...bounds, trace };
        const amended = await limiter.ask('amend', asked);
        if (amended && 'rejected' in amended)
          throw rejectionOfAmendment(amended, amendment, policy);
        return amended;
      }),

    /**
     * Pauses a key.
     * @returns how many milliseconds it is paused for
     * @throws ServiceError SCOPE_MISSING or KEY_UNKNOWN
     */
    pause: async (
      key: string,
      asked: Omit<Asked<'pause'>, 'key'>,
      context: RequestContext,
    ): Promise<number> => {
      demandPauseRight(key, context);
      inItsList({ group: asked.group }, policyOf(key));
      return limiter.ask('pause', { key, ...asked });
    },

    /**
     * Gives hits back without the approvals that took them, as far as the limits of the key are fixed windows.
     * @throws ServiceError as for a check
     */
    refund: async (asked: AskedRefund): Promise<void> => {
      await limiter.ask('refund', inItsList(asked, policyOfKnown(asked.key)));
    },

    /**
     * Takes a vendor's report of how much remains of a limit. A caller that may pause a key may also report.
     * @param report as for the operation; the limit `default` is the key's own
     * @returns how much is left of the limit now
     * @throws ServiceError INVALID_PARAMETER if the key has no such limit or it is no fixed window; KEY_FULL; as a pause
     */
    reportRemaining: async (
      key: string,
      report: RemainingReport,
      context: RequestContext,
    ): Promise<Remaining> => {
      demandPauseRight(key, context);
      const limit = report.limit === DEFAULT_NAME ? undefined : report.limit;
      const group = groupOfReport({ ...report, limit }, policyOf(key));
      const reported = await limiter.ask('reportRemaining', { key, ...report, limit, group });
      if ('rejected' in reported) throw rejectionOfReport(reported, limit);
      return reported;
    },

    /** Runs the work of a bulk request, whose elements `decide` and `release`. */
    runBulk: (
      name: 'check many' | 'release many',
      context: RequestContext,
      work: () => Promise<void>,
    ): Promise<void> => (tracer ? inBulkSpan(name, tracer, context, work) : work()),
  };
}
