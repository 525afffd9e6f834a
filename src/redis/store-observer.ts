import type { RequestTrace } from '../limiter/limiter.js';

/** A call that failed did not run, may have run, or was wrong. */
export type CallOutcome = 'ok' | 'not_run' | 'unknown' | 'fault';

/** What a call carried. */
export interface CallLoad {
  /** The amount of work, such as the number of checks. */
  readonly size: number;
  /** Of its checks, or its release, that are traced. */
  readonly traces?: readonly RequestTrace[] | undefined;
}

/**
 * What a replica catches up with after an outage.
 * - `withdrawal`: request ids that Redis has yet to withdraw
 * - `settle`: keys with waiters whose settle failed, or waits for its turn
 */
export type CatchUp = 'withdrawal' | 'settle';

/** Observes the calls to Redis. The metrics implement it. */
export interface StoreObserver {
  /** A call of a script ended. @param outcome `ok`, or the kind of its failure */
  called(script: string, seconds: number, outcome: CallOutcome, load: CallLoad): void;
  /** A call with this number of checks was sent. */
  batched(checks: number): void;
  /** The number of shards known to be down, which are not asked. A store without shards counts as one. */
  breakersOpen(count: number): void;
  /** So much of it is not done. */
  catchingUp(what: CatchUp, undone: number): void;
}
