/** One error of the service, and how each way in answers it. */
interface ErrorRow {
  /** Over HTTP, and in the log of all ways in. See `errorKindOf`. */
  readonly status: number;
  /** Another header of HTTP's answer. With `Connection` the answer is the last on its connection. */
  readonly header?: 'WWW-Authenticate' | 'Allow' | 'Connection';
  /** The form of HTTP's body, if that is not an object with `error`, and `key` if the request has one. */
  readonly body?: 'without key' | 'plain text';
  /** The text that the caller gets. `serviceError` fills in the placeholders in braces. */
  readonly message: string;
  /** The case, for docs/errors-and-headers.md. */
  readonly when: string;
  /** Seconds until the caller may try again, or `window` for the seconds until the key may have room. */
  readonly retryAfter?: number | 'window';
}

/**
 * Every error of the service, by its code, which answers over HTTP have as `code` and the log as `errorCode`. The table of
 * errors in docs/errors-and-headers.md says the same. Tests compare both with what the service answers.
 */
export const ERRORS = {
  INVALID_PARAMETER: {
    status: 400,
    message: '{parameter} must {must}',
    when: 'a parameter or field has an invalid value, is missing, is given twice, or is unknown in an element; or a request names a lane or group that its key does not have',
  },
  UNKNOWN_PARAMETER: {
    status: 400,
    message: 'unknown parameter {given}; did you mean {parameter}?',
    when: 'a check, a correction, a pause or a report has a parameter that does not exist, such as `canwait` or `maxRequest`',
  },
  TOO_MANY_HITS: {
    status: 400,
    message: 'hits must be at most {max}, the {bound} of {limit}, not {hits}',
    when: 'a check asks for more hits than the maximum, or the burst of a token bucket, of the key or of one of its limits, so it could never be approved',
  },
  WINDOW_NOT_SETTABLE: {
    status: 400,
    message: 'windowMillis must not be set: the limit of the key is a {algorithm}',
    when: 'a check sets `windowMillis`, and the limit of the key is no fixed window, or has a `calendar`',
  },
  INVALID_KEY_LENGTH: {
    status: 400,
    message: 'key must be {min} to {max} bytes of UTF-8, not {bytes}',
    when: 'the key is over 512 bytes',
  },
  INVALID_ENCODING: {
    status: 400,
    message: '{part} must be percent-encoded UTF-8',
    when: 'the key or the request id in the path can not be decoded',
  },
  INVALID_TARGET: {
    status: 400,
    body: 'without key',
    message: '{character} must be written as {encoded} in the URL',
    when: 'the URL has a raw `#` or `\\`',
  },
  HOST_MISSING: {
    status: 400,
    message: 'Host header is required',
    when: 'an HTTP/1.1 request has no `Host` header',
  },
  HOST_REPEATED: {
    status: 400,
    message: 'Host header must be given only once',
    when: 'a request has several `Host` headers',
  },
  MALFORMED_REQUEST: {
    status: 400,
    header: 'Connection',
    body: 'without key',
    message: 'malformed request',
    when: 'the connection sends something other than HTTP',
  },
  INVALID_BODY: {
    status: 400,
    body: 'without key',
    message: 'the body must be {what}',
    when: 'the body of a bulk request is not a JSON array, or has over 1000 elements',
  },
  PARAMETERS_IN_BODY: {
    status: 400,
    message: 'parameters go in the URL, not in the body',
    when: 'the body of a check is a form, or JSON other than `{}`, `[]` and `null`',
  },
  TOKEN_REQUIRED: {
    status: 401,
    header: 'WWW-Authenticate',
    message: 'a bearer token is required',
    when: 'the request has no bearer token',
  },
  TOKEN_UNKNOWN: {
    status: 401,
    header: 'WWW-Authenticate',
    message: 'unknown token',
    when: 'the token is not in `AUTH_TOKENS_FILE`',
  },
  SCOPE_MISSING: {
    status: 403,
    header: 'WWW-Authenticate',
    message: 'the token lacks the scope {scope}',
    when: 'the token lacks the scope of the request; an override also needs the scope `configure`, and so does a pause or a report if `requests_can_pause` does not allow it; a correction to 0 hits, or `is_negative_hits` of gRPC, also needs the scope `release`',
  },
  HOST_NOT_ALLOWED: {
    status: 403,
    message: 'the host {host} is not in ALLOWED_HOSTS',
    when: '`Host` names a host that is not allowed; checked if `ALLOWED_HOSTS` is set, or `HOST` is on loopback and there are no tokens',
  },
  ORIGIN_NOT_ALLOWED: {
    status: 403,
    message: "the page's origin is not in ALLOWED_ORIGINS",
    when: 'a browser sends the request for a page of another origin, and there are no tokens',
  },
  KEY_NOT_ALLOWED: {
    status: 403,
    message: 'the token does not allow this key',
    when: 'none of the `key_patterns` of the token matches the key',
  },
  OVERRIDE_FORBIDDEN: {
    status: 403,
    message: 'overriding {parameter} is disabled',
    when: '`REQUESTS_CAN_SET_RATE`, `REQUESTS_CAN_MOD_QUEUE` or `REQUESTS_CAN_SET_WINDOW` forbids the override',
  },
  OVERRIDE_TOO_LARGE: {
    status: 403,
    message: '{parameter} must be at most {max} for this key',
    when: 'an override is above the ceiling of the key, see `max_requests_ceiling` and `MAX_REQUESTS_CEILING`; `holdMillis`, or the length of a hold to be renewed, is above `MAX_HOLD_MILLIS` or `max_hold_millis`; or `keepMillis` is above `MAX_KEEP_MILLIS`, or longer than a window and a hold may last',
  },
  CORRECTION_TOO_LARGE: {
    status: 403,
    message: 'hits must be at most {max} in a correction for this key, not {hits}',
    when: 'a correction sets more hits than `max_corrected_hits`, or without that field than ten times the maximum of the key, and more than the approval has',
  },
  HOLD_FORBIDDEN: {
    status: 403,
    message: 'holding approvals is disabled for this key',
    when: 'a request has `holdMillis` or renews a hold, and `REQUESTS_CAN_HOLD` or `requests_can_hold` forbids holds',
  },
  KEY_UNKNOWN: {
    status: 403,
    message: 'no rule matches the key',
    when: 'no rule matches the key, and `UNKNOWN_KEYS` is `deny`',
  },
  REQUEST_NOT_FOUND: {
    status: 404,
    message: 'request not found',
    when: 'the request id is unknown or counts no longer: it was released before, its windows have ended, or its hold has lapsed; or a renewal is for an approval that is not held',
  },
  HOLDER_NOT_FOUND: {
    status: 404,
    message: 'no such holder',
    when: 'no held approval of the key has the handle: it was released, its hold has lapsed, or it was ended before',
  },
  PATH_NOT_FOUND: {
    status: 404,
    body: 'without key',
    message: 'no such path: {path}',
    when: 'the service has no such path',
  },
  PATH_OF_OTHER_PORT: {
    status: 404,
    body: 'without key',
    message: 'no such path on the port of ADMIN_PORT: {path}; ask the one of PORT',
    when: '`/rate` is asked for on the port of `ADMIN_PORT`',
  },
  SLASH_IN_KEY: {
    status: 404,
    body: 'without key',
    message: 'no such path: {path}; send a / in a key as %2F',
    when: 'the path has more parts than `/rate/{key}/{requestId}`, or an empty one',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    header: 'Allow',
    message: '{method} is not allowed here',
    when: 'the path takes other methods; `HEAD /rate` is rejected since it would consume',
  },
  CHECK_HAS_REQUEST_ID: {
    status: 405,
    header: 'Allow',
    message: '{method} takes no such part after the key; send a / in a key as %2F',
    when: 'a `POST` has a second part after its key, as in `/rate/tenant/7`, or a `GET` has one that is no UUID',
  },
  REQUEST_ID_USED: {
    status: 409,
    message: 'the approval with this requestId was released, or has lapsed',
    when: 'a check has the `requestId` of an approval that was released, or whose hold has lapsed',
  },
  PLACE_TAKEN_OVER: {
    status: 409,
    message: 'a later check with this requestId has taken over',
    when: 'a later check with the same `requestId` has taken over the place of this one, or has ended its wait',
  },
  PLACE_WITHDRAWN: {
    status: 409,
    message: 'a DELETE has withdrawn this request',
    when: 'a `DELETE` has withdrawn a check by its `requestId` while it waited',
  },
  REQUEST_ID_CONFLICT: {
    status: 409,
    message: '{parameter} must be the same in all checks with this requestId',
    when: 'an earlier check with the same `requestId` has other `hits`, another `holdMillis` or another `holder`',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    header: 'Connection',
    body: 'without key',
    message: 'request timed out',
    when: 'headers take over 10 s, or a request with its body over 30 s. Waiting for the answer has no such limit',
  },
  BODY_TOO_LARGE: {
    status: 413,
    body: 'without key',
    message: 'the body must be at most {max} bytes',
    when: 'the body of a bulk request is over 1 MiB',
  },
  URL_TOO_LONG: {
    status: 414,
    message: 'the URL must be at most {max} bytes, not {bytes}',
    when: 'the URL is over 8 KiB',
  },
  UNSUPPORTED_BODY: {
    status: 415,
    body: 'without key',
    message: '{header} must be {value}',
    when: "a bulk request's `Content-Type` is not JSON, or its body is compressed",
  },
  RATE_LIMIT_EXCEEDED: {
    status: 429,
    message: 'rate limit exceeded',
    when: 'the limit is reached, and the request may not wait, the queue is full, the places of its group are taken, or its turn would come too late; or the key is paused',
    retryAfter: 'window',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    header: 'Connection',
    body: 'without key',
    message: 'the headers are too large',
    when: 'the headers are over 16 KiB',
  },
  INTERNAL_ERROR: {
    status: 500,
    message: 'internal error',
    when: 'a fault of Sluice; the log has the cause',
  },
  LISTING_FORBIDDEN: {
    status: 501,
    body: 'without key',
    message: 'the Redis user may not list keys (+scan)',
    when: 'all keys are asked for, and the Redis user lacks `+scan`',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    message: 'store unavailable',
    when: 'Redis can not be reached, or did not answer in time',
    retryAfter: 1,
  },
  STORE_FULL: {
    status: 503,
    message: 'store full: no room for another key',
    when: 'Redis has no room for a new key or approval, or the embedded limiter has `MAX_KEYS` keys or no memory left',
    retryAfter: 1,
  },
  KEY_FULL: {
    status: 503,
    message:
      'the key has too many approvals, holds or groups: try again later, or raise MAX_IDS_PER_KEY, MAX_HOLDS_PER_KEY or MAX_GROUPS_PER_KEY',
    when: 'the window of the key has `MAX_IDS_PER_KEY` approvals, or `MAX_HOLDS_PER_KEY` are held, and its maximum is higher; or `MAX_GROUPS_PER_KEY` groups of the key count, are stopped or are paused',
    retryAfter: 1,
  },
  SHUTTING_DOWN: {
    status: 503,
    message: 'shutting down',
    when: 'the replica stopped before the request was decided',
    retryAfter: 1,
  },
  HANDED_OVER: {
    status: 503,
    header: 'Connection',
    message: 'shutting down; another replica has the place',
    when: 'the replica stops, and the check has `keepMillis`: another replica takes its place over if it is sent again with its `requestId`',
    retryAfter: 0,
  },
  TOO_MANY_WAITERS: {
    status: 503,
    message: 'too many waiters on this replica',
    when: '`MAX_WAITERS` requests wait on the replica, and this one would have to wait',
    retryAfter: 1,
  },
  TOO_MANY_WAITERS_OF_CALLER: {
    status: 503,
    message: 'too many waiters of this caller on this replica',
    when: "the caller's waiters take all of its `waiting_share` or `MAX_WAITERS_PER_CALLER`, and one more would wait",
    retryAfter: 1,
  },
  NO_ROOM_FOR_BODY: {
    status: 503,
    body: 'without key',
    message: 'no room for another body',
    when: 'the bodies in flight take 16 MiB for the caller, or 64 MiB on the port',
    retryAfter: 1,
  },
  NOT_READY: {
    status: 503,
    body: 'plain text',
    message: '{reasons}',
    when: 'the replica is not ready; `/readyz` answers with the reasons as plain text',
    retryAfter: 1,
  },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** The names in braces in a message. */
type Placeholder<Message extends string> = Message extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never;

/** The values for the placeholders of an error's message. */
export type ErrorValues<Code extends ErrorCode> = Readonly<
  Record<Placeholder<(typeof ERRORS)[Code]['message']>, string | number>
>;

/** The row of an error, with the fields that only some rows have. */
export function errorRow(code: ErrorCode): ErrorRow {
  return ERRORS[code];
}

/** `deny`: the limit is reached. `reject`: the request is invalid or not allowed. `fail`: Sluice can not serve it now. */
export function errorKindOf(code: ErrorCode): 'deny' | 'reject' | 'fail' {
  const { status } = ERRORS[code];
  if (status === 429) return 'deny';
  return status < 500 ? 'reject' : 'fail';
}

/** A request that is answered with an error of the table. Its message has the placeholders filled. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';

  constructor(
    readonly code: ErrorCode,
    readonly values: Readonly<Record<string, string | number>>,
  ) {
    super(ERRORS[code].message.replace(/\{(\w+)\}/g, (_, name: string) => String(values[name])));
  }
}

/** Makes an error with exactly the values that its message has placeholders for. */
export function serviceError<Code extends ErrorCode>(
  code: Code,
  values: ErrorValues<Code>,
): ServiceError {
  return new ServiceError(code, values);
}

export function invalidParameter(parameter: string, must: string): ServiceError {
  return serviceError('INVALID_PARAMETER', { parameter, must });
}
