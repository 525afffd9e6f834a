import { StoreFullError, StoreUnavailableError } from '../../limiter/errors.js';

/**
 * The meaning of a Redis client error for the call.
 * - `fault`: the call itself was wrong, which is a bug of Sluice
 * - `moving`: the call did not run; its slot is moving to another node
 * - `passing`: the call did not run; it may succeed very soon
 * - `full`: the call did not run; its key is new, and Redis has no memory for it
 * - `refused`: the call did not run; Redis answers, but accepts no such calls now
 * - `other_form`: the call did not run; another version of Sluice has stored its key in another form
 * - `unknown`: the reply was lost or late; the call may have run, or may run later
 */
export type Failure =
  'fault' | 'moving' | 'passing' | 'full' | 'refused' | 'other_form' | 'unknown';

/** `lua/lib/limits-text.lua` fails a call with this. Redis adds the script. */
const OTHER_FORM = /\bRedis holds form \d+ of the state, this version reads form \d+/;
/** https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors */
const REPLIES: readonly [pattern: RegExp, failure: Failure][] = [
  [/^(MOVED|ASK|TRYAGAIN)\b/, 'moving'],
  // A key of the script is on another node, moves to one, or is in no slot that any node serves.
  [/^(ERR )?Script attempted to (access|execute) /, 'moving'],
  [/^(LOADING|MASTERDOWN|READONLY|CLUSTERDOWN)\b/, 'passing'],
  [/^OOM\b/, 'full'],
  [/^(BUSY|MISCONF|NOREPLICAS|NOAUTH|NOPERM)\b/, 'refused'],
  [OTHER_FORM, 'other_form'],
];

/** There is no connection to send a call on. */
export class NotConnectedError extends Error {
  override readonly name = 'NotConnectedError';
}

/** Nobody waits for the call any more, so it was not sent, or not sent again. */
export class NotWantedError extends Error {
  override readonly name = 'NotWantedError';

  constructor() {
    super('nobody waits for the reply any more');
  }
}

/** Messages of ioredis without a connection. The call was not sent. */
const NOT_SENT = /^(Stream isn't writeable|Cluster isn't ready)/;
/** Messages of ioredis for calls whose connection broke. */
const NOT_ANSWERED = /^(Connection is closed\.$|Reached the max retries per request limit)/;
const GAVE_UP = /^Too many Cluster redirections\. Last error: (?:\w+: )?/;
/** The line of a script, which Redis 6 puts before the command's message. */
const LINE_OF_SCRIPT =
  /^(?:ERR )?(?:Error running script .*?: )?@?user_script:\s?\d+: (?:@?user_script: \d+: )?-?/;

export function classifyFailure(error: unknown): Failure {
  if (!(error instanceof Error)) return 'fault';
  if (error instanceof NotConnectedError || error instanceof NotWantedError) return 'passing';
  const isGivenUp = GAVE_UP.test(error.message);
  if (error.name === 'ReplyError' || isGivenUp) {
    const said = error.message.replace(GAVE_UP, '').replace(LINE_OF_SCRIPT, '');
    const failure = REPLIES.find(([pattern]) => pattern.test(said))?.[1];
    return failure ?? (isGivenUp ? 'unknown' : 'fault');
  }
  return NOT_SENT.test(error.message) ? 'passing' : 'unknown';
}

/**
 * An error of ioredis about a connection, with a message that says what is wrong with the connection; one about the form of a
 * key without the script.
 * @param connectionError the last error of the connection, if it is lost
 */
export function explained(error: unknown, connectionError: Error | undefined): unknown {
  if (!(error instanceof Error)) return error;
  const [otherForm] = OTHER_FORM.exec(error.message) ?? [];
  if (otherForm !== undefined) return new Error(otherForm);
  const said = NOT_SENT.test(error.message)
    ? 'not connected to Redis'
    : NOT_ANSWERED.test(error.message) && 'the connection to Redis was lost before the reply';
  if (said === false) return error;
  const { message, code } = (connectionError ?? {}) as Partial<NodeJS.ErrnoException>;
  // Node's error for several addresses has a code only.
  const why = message === '' ? code : message;
  return new Error(why ? `${said}: ${why}` : said);
}

/** Whether a primary says that it has become a replica, so that the connection to it is useless. */
export function isDemoted(error: unknown): boolean {
  return error instanceof Error && error.message.replace(LINE_OF_SCRIPT, '').startsWith('READONLY');
}

/** The error for the callers of the limiter. */
export function toLimiterError(error: unknown): unknown {
  const failure = classifyFailure(error);
  if (failure === 'fault') return error;
  if (failure === 'full') return new StoreFullError({ cause: error });
  return new StoreUnavailableError({ cause: error, mayHaveRun: failure === 'unknown' });
}
