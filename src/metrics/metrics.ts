import type { UnavailableError } from '../limiter/errors.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { Decision } from '../limiter/limiter.js';

/** The counts and measurements of the service, for Prometheus. */
export interface Metrics {
  /**
   * One check was decided.
   * @param seconds from its arrival to its decision
   * @param policy of its key
   */
  decided(
    decision: Decision,
    seconds: number,
    policy: Pick<KeyPolicy, 'isShadow' | 'ruleName'>,
  ): void;
  /** One check could not be decided, and was answered with a 503. */
  failed(reason: UnavailableError['reason'] | 'too_many_waiters_of_caller'): void;
  /** All of it, in the text format of Prometheus. */
  text(): Promise<string>;
  readonly contentType: string;
}
