import type { LimitsOf, Policies } from '../../src/limiter/limiter.js';

/** Policies with only limits, which may differ at each call. */
export function policiesWith(limitsOf: LimitsOf): Policies {
  return {
    get current() {
      return { policyOf: (key: string) => ({ limits: limitsOf(key) }) };
    },
  };
}
