import type { KeyLimits, Policies } from '../limiter.js';

/** The policy of a key, which is looked up again only if another may apply. */
export class KeptPolicy<Policy extends KeyLimits> {
  #from: Policies<Policy>['current'];
  #policy: Policy;

  constructor(
    private readonly key: string,
    private readonly policies: Policies<Policy>,
  ) {
    this.#from = policies.current;
    this.#policy = this.#from.policyOf(key);
  }

  get current(): Policy {
    const { current } = this.policies;
    if (current !== this.#from) {
      this.#from = current;
      this.#policy = current.policyOf(this.key);
    }
    return this.#policy;
  }
}
