import type { LimitsOf, Policies } from '../../src/limiter/limiter.js';

/** Policies that are their limits, and may change with each look. */
export function policiesWith(limitsOf: LimitsOf): Policies {
  return {
    get current() {
      return { policyOf: (key: string) => ({ limits: limitsOf(key) }) };
    },
  };
}
