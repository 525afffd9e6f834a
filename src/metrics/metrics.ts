import { UNAVAILABLE_REASONS } from '../limiter/errors.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { Decision } from '../limiter/limiter.js';

/**
 * Why a connection was dropped: its port had as many connections as it may have, its port deferred as many requests as
 * it may, too many bytes of answers were unsent, its client read nothing for too long, its client reset too many
 * gRPC streams, or its first requests were all rejected.
 */
export const DROP_REASONS = [
  'too_many_connections',
  'too_many_deferred',
  'unread_answers',
  'slow_reader',
  'too_many_resets',
  'too_many_rejected',
] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** Why a gRPC stream was dropped: too large headers, too many streams on its port, or a client that is too slow. */
export const STREAM_DROP_REASONS = ['headers_too_large', 'too_many', 'too_late'] as const;
export type StreamDropReason = (typeof STREAM_DROP_REASONS)[number];

/** Why a check gets a 503. */
export const FAILURE_REASONS = [...UNAVAILABLE_REASONS, 'too_many_waiters_of_caller'] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** How many checks had each outcome since the start. */
export interface DecisionTotals {
  readonly approved: number;
  readonly denied: number;
  readonly shadowed: number;
  readonly withdrawn: number;
  /** Answered with a 503. */
  readonly failed: number;
}

/** The counts and measurements of the service, for Prometheus. */
export interface Metrics {
  /**
   * One check was decided.
   * @param seconds from its arrival to its decision
   * @param policy of its key
   * @param limit the name of the limit that denied it, if its key has several
   * @param lane the name of its lane, if its key has lanes
   */
  decided(
    decision: Decision,
    seconds: number,
    policy: Pick<KeyPolicy, 'isShadow' | 'ruleName'>,
    limit?: string,
    lane?: string,
  ): void;
  failed(reason: FailureReason): void;
  /** One request was deferred, since its connection had as many requests in flight as it may have. */
  requestDeferred(): void;
  connectionDropped(reason: DropReason): void;
  streamDropped(reason: StreamDropReason): void;
  decisionTotals(): Promise<DecisionTotals>;
  /** All metrics, in the text format of Prometheus. */
  text(): Promise<string>;
  readonly contentType: string;
}
