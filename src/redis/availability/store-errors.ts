import { StoreUnavailableError } from '../../limiter/errors.js';

/**
 * What an error of the Redis client means for the call.
 * - `fault`: the call itself was wrong; ours to mend
 * - `moving`: it did not run; its slot is on its way to another node
 * - `passing`: it did not run, and may do so very soon
 * - `refused`: it did not run; Redis answers, but takes nothing now
 * - `unknown`: the reply was lost or late; it may have run, or may run yet
 */
export type Failure = 'fault' | 'moving' | 'passing' | 'refused' | 'unknown';

/** https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors */
const REPLIES: readonly [pattern: RegExp, failure: Failure][] = [
  [/^(MOVED|ASK|TRYAGAIN)\b/, 'moving'],
  // A script that was let in, and did not find one of its keys any more.
  [/^(ERR )?Script attempted to access a non local key in a cluster node/, 'moving'],
  [/^(LOADING|MASTERDOWN|READONLY|CLUSTERDOWN)\b/, 'passing'],
  [/^(OOM|BUSY|MISCONF|NOREPLICAS|NOAUTH|NOPERM)\b/, 'refused'],
];

/** What ioredis says where there is no connection, so that it sent nothing. */
const NOT_SENT = /^(Stream isn't writeable|Cluster isn't ready)/;
const GAVE_UP = /^Too many Cluster redirections\. Last error: (?:\w+: )?/;
/** Where in a script it happened, which Redis 6 puts before what the command said. */
const PLACE_IN_SCRIPT =
  /^(?:ERR )?(?:Error running script .*?: )?@?user_script:\s?\d+: (?:@?user_script: \d+: )?-?/;

export function classifyFailure(error: unknown): Failure {
  if (!(error instanceof Error)) return 'fault';
  const isGivenUp = GAVE_UP.test(error.message);
  if (error.name === 'ReplyError' || isGivenUp) {
    const said = error.message.replace(GAVE_UP, '').replace(PLACE_IN_SCRIPT, '');
    const failure = REPLIES.find(([pattern]) => pattern.test(said))?.[1];
    return failure ?? (isGivenUp ? 'unknown' : 'fault');
  }
  return NOT_SENT.test(error.message) ? 'passing' : 'unknown';
}

/** A primary that has become a replica says so; the connection to it is of no use any more. */
export function isDemoted(error: unknown): boolean {
  return (
    error instanceof Error && error.message.replace(PLACE_IN_SCRIPT, '').startsWith('READONLY')
  );
}

/** The error to show to those who use the limiter. */
export function toLimiterError(error: unknown): unknown {
  const failure = classifyFailure(error);
  if (failure === 'fault') return error;
  return new StoreUnavailableError({ cause: error, mayHaveRun: failure === 'unknown' });
}
