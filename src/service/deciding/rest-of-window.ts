import { eventLoop } from '../../common/ticks.js';
import type { CheckRequest, Decision, Limiter } from '../../limiter/limiter.js';
import { countsList, forEachLimit, type LimitQuota } from '../../limiter/limits.js';

type Denied = Extract<Decision, { readonly outcome: 'denied' }>;

/** A limit has denied these. Other denials are about places in the queue, or a pause. */
const BY_LIMITS: readonly Denied['reason'][] = ['limit_reached', 'too_many_hits'];

/**
 * Takes the rest for a denied check.
 * @returns the decision, with what is left then
 */
export type TakeRest = (
  decision: Decision,
  check: Pick<CheckRequest, 'key' | 'hits' | 'list'>,
) => Promise<Decision>;

/**
 * Returns a function that lets a denied check take what is left of the fixed windows that lack room for it, as in Envoy ratelimit, where a denied
 * request counts. What asks only after it has used something, as the token limits of a gateway do, is limited for the rest of the
 * window, and nothing exceeds a maximum.
 */
export function restTaker(limiter: Pick<Limiter, 'reportRemaining'>): TakeRest {
  const report = sharedReports(limiter);
  return async (decision, { key, hits = 1, list }) => {
    if (decision.outcome !== 'denied' || !BY_LIMITS.includes(decision.reason)) return decision;
    const { quota } = decision;
    const hasTaken = (limit: LimitQuota): boolean =>
      limit.algorithm.name === 'fixed_window' &&
      limit.counts === 'hits' &&
      countsList(limit, list) &&
      limit.remaining < hits;
    const taken = quota.limits.filter((limit) => hasTaken(limit) && limit.remaining > 0);
    await Promise.all(taken.map(({ name }) => report(key, name)));
    const limits = forEachLimit(quota.limits, (limit) =>
      hasTaken(limit) ? { ...limit, remaining: 0 } : limit,
    );
    return { ...decision, quota: { ...quota, limits } };
  };
}

/**
 * Returns a function that reports that nothing remains of a limit. The denials of a tick share a report: checks share calls to the
 * store, and each of 20,000 denied ones would make a call of its own. A report is not sent before the tick ends, so it comes after all
 * of their decisions.
 */
function sharedReports(
  limiter: Pick<Limiter, 'reportRemaining'>,
): (key: string, limit: string | undefined) => Promise<unknown> {
  const ofTick = new Map<string, Promise<unknown>>();
  return (key, limit) => {
    // No name of a limit has a space.
    const id = `${limit ?? ''} ${key}`;
    const shared = ofTick.get(id);
    if (shared) return shared;
    if (ofTick.size === 0) {
      eventLoop.next(() => {
        ofTick.clear();
      });
    }
    const reported = limiter.reportRemaining(key, { limit, remaining: 0 });
    ofTick.set(id, reported);
    return reported;
  };
}
