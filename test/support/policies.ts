import type { KeyLimits, Policies } from '../../src/limiter/limiter.js';
import { type DeclaredLimits, keyLimits } from './limits.js';

/** Policies with only limits, which may differ at each call. */
export function policiesWith(limitsOf: (key: string) => DeclaredLimits | KeyLimits): Policies {
  const policyOf = (key: string): KeyLimits => {
    const limits = limitsOf(key);
    return 'limits' in limits ? limits : keyLimits(limits);
  };
  return {
    get current() {
      return { policyOf };
    },
  };
}
