import type { Limits } from '../limiter/limiter.js';

/** Everything that rules say of a key. */
export interface KeyPolicy {
  readonly limits: Limits;
  readonly requestsCanSetRate: boolean;
  readonly requestsCanModQueue: boolean;
  /** The greatest values that requests may set. */
  readonly maxRequestsCeiling: number;
  readonly maxRequestsInQueueCeiling: number;
  /** Checks are decided and counted, and everybody passes. */
  readonly isShadow: boolean;
  /** Whether any rule matches. */
  readonly isKnown: boolean;
  /** The name of the last matching rule that has one. */
  readonly ruleName: string | undefined;
}
