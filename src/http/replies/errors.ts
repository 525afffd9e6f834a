/** The answer to one error. */
interface ErrorAnswer {
  readonly status: number;
  /** The text of `error` in the body. `httpError` fills in what stands in braces. */
  readonly message: string;
  /** The case, for docs/api.md. */
  readonly when: string;
  /** Seconds until the client should come back, or `window` for those until the key's window ends. */
  readonly retryAfter?: number | 'window';
  /** Another header of the answer. With `Connection` the answer is the last on its connection. */
  readonly header?: 'WWW-Authenticate' | 'Allow' | 'Connection';
  /** The form of the body, if that is not an object with `error`, and `key` where the request has one. */
  readonly body?: 'without key' | 'plain text';
}

/**
 * Every error answer of the service, by its code. The log has the code as `errorCode`; bodies never have it.
 * The table of errors in docs/api.md says the same. Tests compare both with what the service answers.
 */
export const ERRORS = {
  INVALID_PARAMETER: {
    status: 400,
    message: '{parameter} must {must}',
    when: 'a parameter or field has a wrong value, is missing, given twice, or unknown in an element',
  },
  MISSPELT_PARAMETER: {
    status: 400,
    message: '{parameter} must be spelt so, not {given}',
    when: 'a parameter is misspelt, such as `canwait` or `maxRequests[]`',
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
    message: 'the URL must have {character} as {encoded}',
    when: 'the URL has a raw `#` or `\\`',
    body: 'without key',
  },
  HOST_MISSING: {
    status: 400,
    message: 'the Host header must be given',
    when: 'a request by HTTP/1.1 has no `Host` header',
  },
  HOST_REPEATED: {
    status: 400,
    message: 'the Host header must be given once',
    when: 'a request has several `Host` headers',
  },
  MALFORMED_REQUEST: {
    status: 400,
    message: 'malformed request',
    when: 'the connection sends something other than HTTP',
    header: 'Connection',
    body: 'without key',
  },
  INVALID_BODY: {
    status: 400,
    message: 'the body must be {what}',
    when: 'the body of a call for many is no JSON array, or has over 1000 elements',
    body: 'without key',
  },
  TOKEN_REQUIRED: {
    status: 401,
    message: 'a bearer token is required',
    when: 'the request has no bearer token',
    header: 'WWW-Authenticate',
  },
  TOKEN_UNKNOWN: {
    status: 401,
    message: 'unknown token',
    when: 'the token is not in `AUTH_TOKENS_FILE`',
    header: 'WWW-Authenticate',
  },
  SCOPE_MISSING: {
    status: 403,
    message: 'the token lacks the scope {scope}',
    when: 'the token is for something else; an override takes the scope `configure`, too',
    header: 'WWW-Authenticate',
  },
  HOST_NOT_ALLOWED: {
    status: 403,
    message: 'the host {host} is not in ALLOWED_HOSTS',
    when: '`HOST` is on loopback and there are no tokens, or `ALLOWED_HOSTS` is set, and `Host` names another',
  },
  ORIGIN_NOT_ALLOWED: {
    status: 403,
    message: "the page's origin is not in ALLOWED_ORIGINS",
    when: 'a browser sends the request for a page of another origin, and there are no tokens',
  },
  KEY_NOT_ALLOWED: {
    status: 403,
    message: 'the token is not for this key',
    when: 'none of the `key_patterns` of the token matches the key',
  },
  OVERRIDE_FORBIDDEN: {
    status: 403,
    message: '{parameter} may not be set by requests here',
    when: '`REQUESTS_CAN_SET_RATE` or `REQUESTS_CAN_MOD_QUEUE` forbids the override',
  },
  OVERRIDE_TOO_LARGE: {
    status: 403,
    message: '{parameter} must be at most {max} here',
    when: 'an override is above the ceiling of the key, see `max_requests_ceiling` and `MAX_REQUESTS_CEILING`',
  },
  KEY_UNKNOWN: {
    status: 403,
    message: 'no rule matches the key',
    when: 'no rule matches the key, and `UNKNOWN_KEYS` is `deny`',
  },
  REQUEST_NOT_FOUND: {
    status: 404,
    message: 'request not found',
    when: 'the request id is unknown, was released before, or is of a window that has ended',
  },
  PATH_NOT_FOUND: {
    status: 404,
    message: 'no such path: {path}',
    when: 'the service has no such path',
    body: 'without key',
  },
  METHOD_NOT_ALLOWED: {
    status: 405,
    message: '{method} is not allowed here',
    when: 'the path takes other methods; `HEAD /rate` is refused since it would consume',
    header: 'Allow',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    message: 'the request did not come in time',
    when: 'headers take over 10 s, or a request with its body over 30 s. Waiting for the answer has no such limit',
    header: 'Connection',
    body: 'without key',
  },
  BODY_TOO_LARGE: {
    status: 413,
    message: 'the body must be at most {max} bytes',
    when: 'the body of a call for many is over 1 MiB',
    body: 'without key',
  },
  URL_TOO_LONG: {
    status: 414,
    message: 'the URL must be at most {max} bytes, not {bytes}',
    when: 'the URL is over 8 KiB',
  },
  UNSUPPORTED_BODY: {
    status: 415,
    message: '{header} must be {value}',
    when: 'the body of a call for many is not said to be JSON, or is compressed',
    body: 'without key',
  },
  RATE_LIMIT_EXCEEDED: {
    status: 429,
    message: 'rate limit exceeded',
    when: 'the limit is reached, and the request may not wait, the queue is full, or its turn does not come in time',
    retryAfter: 'window',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    message: 'the headers are too large',
    when: 'the headers are over 16 KiB',
    header: 'Connection',
    body: 'without key',
  },
  INTERNAL_ERROR: {
    status: 500,
    message: 'internal error',
    when: 'Sluice has a fault; the log has its cause',
  },
  LISTING_FORBIDDEN: {
    status: 501,
    message: 'the Redis user may not list keys (+scan)',
    when: 'all keys are asked for, and the Redis user lacks `+scan`',
    body: 'without key',
  },
  STORE_UNAVAILABLE: {
    status: 503,
    message: 'store unavailable',
    when: 'Redis can not be asked, or did not answer in time',
    retryAfter: 1,
  },
  STORE_FULL: {
    status: 503,
    message: 'store full: no room for another key',
    when: 'Redis, or the embedded limiter by `MAX_KEYS` or by its memory, has no room for a new key, or for a new approval',
    retryAfter: 1,
  },
  KEY_FULL: {
    status: 503,
    message: 'too many approvals of the key in this window',
    when: 'the window of the key has `MAX_IDS_PER_KEY` approvals, and its maximum is higher',
    retryAfter: 1,
  },
  SHUTTING_DOWN: {
    status: 503,
    message: 'shutting down',
    when: 'the replica stops, and the request was not decided before',
    retryAfter: 1,
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
    message: 'no room for another body',
    when: 'the bodies under way take 16 MiB of the caller, 4 MiB of the connection, or 64 MiB of the port',
    retryAfter: 1,
    body: 'without key',
  },
  NOT_READY: {
    status: 503,
    message: '{reasons}',
    when: '`/readyz` says no, with the reasons as plain text',
    retryAfter: 1,
    body: 'plain text',
  },
} as const satisfies Record<string, ErrorAnswer>;

export type ErrorCode = keyof typeof ERRORS;

/** The names in braces in a message. */
type Placeholder<Message extends string> = Message extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholder<Rest>
  : never;

/** The values for the placeholders of an error's message. */
export type ErrorValues<Code extends ErrorCode> = Readonly<
  Record<Placeholder<(typeof ERRORS)[Code]['message']>, string | number>
>;

/** The message of an error with its placeholders filled. */
export function messageOf<Code extends ErrorCode>(code: Code, values: ErrorValues<Code>): string {
  const byName: Readonly<Record<string, string | number>> = values;
  return ERRORS[code].message.replace(/\{(\w+)\}/g, (_, name: string) => String(byName[name]));
}

/** The entry of an error, with the fields that only some have. */
export function errorAnswer(code: ErrorCode): ErrorAnswer {
  return ERRORS[code];
}
