import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import type { OutagePolicy } from '../limiter.js';

/** Some shards may be down while others are up. Changes within this time get no lines of their own. */
const QUIET_MILLIS = 1000;

/** Logs when the policy begins to decide, and when the store decides again. */
export class OutageLog {
  #decisions = 0;
  #lastDecisionAt = -Infinity;

  constructor(
    private readonly policy: OutagePolicy,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  policyDecides(): void {
    if (this.#decisions === 0) {
      this.logger.warn({ policy: this.policy }, 'the outage policy decides');
    }
    this.#decisions += 1;
    this.#lastDecisionAt = this.clock.now();
  }

  storeDecided(): void {
    if (this.#decisions === 0 || this.clock.now() - this.#lastDecisionAt < QUIET_MILLIS) return;
    const { policy } = this;
    this.logger.info({ policy, decisions: this.#decisions }, 'the store decides again');
    this.#decisions = 0;
  }
}
