import { StoreUnavailableError } from '../limiter/errors.js';

/**
 * Error replies that speak of Redis's condition and not of the call: the script did not run.
 * https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors
 */
const PASSING_REPLIES =
  /^(LOADING|READONLY|OOM|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MISCONF|NOREPLICAS)\b/;

/** What ioredis says when it did not send a command because there is no connection. */
const NOT_SENT = "Stream isn't writeable";

/**
 * What an error of the Redis client means.
 * - `fault`: the call itself was wrong; ours to mend
 * - `not_run`: it never ran
 * - `unknown`: the reply was lost or late; it may have run, or may run yet
 */
export type FailureKind = 'fault' | 'not_run' | 'unknown';

export function classifyFailure(error: unknown): FailureKind {
  if (!(error instanceof Error)) return 'fault';
  if (error.name === 'ReplyError') return PASSING_REPLIES.test(error.message) ? 'not_run' : 'fault';
  return error.message.startsWith(NOT_SENT) ? 'not_run' : 'unknown';
}

/** The error to show to those who use the limiter. */
export function toLimiterError(error: unknown): unknown {
  return classifyFailure(error) === 'fault' ? error : new StoreUnavailableError({ cause: error });
}

/** Whether a script whose call failed like this may have run all the same, or may run yet. */
export function mayHaveRun(error: unknown): boolean {
  return error instanceof StoreUnavailableError && classifyFailure(error.cause) === 'unknown';
}
