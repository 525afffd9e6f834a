import type { ApprovalObserver, RequestTrace } from '../../limiter/limiter.js';
import { LONGEST_BACKOFF_MILLIS } from './losses.js';

/** A failed call did not run, may have run (`unknown`), or was wrong (`fault`). */
export type CallOutcome = 'ok' | 'not_run' | 'unknown' | 'fault';

/** What a call carried. */
export interface CallLoad {
  /** The command that ran the script. Other commands are neither measured nor traced, and have none. */
  readonly operation?: 'FCALL' | 'EVALSHA' | undefined;
  /** The amount of work, for example the number of checks. */
  readonly size: number;
  /** The traces of its checks, or of its release. */
  readonly traces?: readonly RequestTrace[] | undefined;
}

/** Observes the calls to Redis. The metrics implement it. */
export interface StoreObserver extends ApprovalObserver {
  /** A call of a script ended. @param outcome `ok`, or the kind of its failure */
  called(script: string, seconds: number, outcome: CallOutcome, load: CallLoad): void;
  /** A call with this number of checks was sent. */
  batched(checks: number): void;
  /** The number of shards that are known to be down and get no calls. A store without shards counts as one. */
  breakersOpen(count: number): void;
  /**
   * This amount of work after an outage is not done yet.
   * @param what `withdrawal`: request ids that Redis has yet to withdraw; `settle`: keys with waiters whose settle failed
   *   or has not been sent yet
   */
  catchingUp(what: 'withdrawal' | 'settle', undone: number): void;
}

/**
 * The wait before the next attempt: twice as long after each failure, up to a quarter of a second.
 * @param failures in a row so far, at least 1
 * @param firstMillis the wait after the first of them
 */
export function backoffMillis(failures: number, firstMillis: number): number {
  return Math.min(firstMillis * 2 ** (failures - 1), LONGEST_BACKOFF_MILLIS);
}
