/** One error of the service. Each way in answers it with a status of its own. */
interface ErrorRow {
  /** `deny`: the limit is reached. `reject`: the request is not one that is served. `fail`: Sluice can not serve it now. */
  readonly kind: 'deny' | 'reject' | 'fail';
  /** The text that the caller gets. `serviceError` fills in the placeholders in braces. */
  readonly message: string;
  /** The case, for docs/api.md. */
  readonly when: string;
  /** Seconds until the caller may try again, or `window` for the seconds until the key's window ends. */
  readonly retryAfter?: number | 'window';
}

/**
 * Every error of the service, by its code. The log has the code as `errorCode`; answers never have it. HTTP maps the codes
 * to statuses in src/http/replies/error-statuses.ts, gRPC in src/grpc/error-statuses.ts.
 * The table of errors in docs/api.md says the same. Tests compare both with what the service answers.
 */
export const ERRORS = {
  INVALID_PARAMETER: {
    kind: 'reject',
    message: '{parameter} must {must}',
    when: 'a parameter or field has a wrong value, is missing, given twice, or unknown in an element',
  },
  MISSPELT_PARAMETER: {
    kind: 'reject',
    message: '{parameter} must be spelt so, not {given}',
    when: 'a parameter is misspelt, such as `canwait` or `maxRequests[]`',
  },
  INVALID_KEY_LENGTH: {
    kind: 'reject',
    message: 'key must be {min} to {max} bytes of UTF-8, not {bytes}',
    when: 'the key is over 512 bytes',
  },
  INVALID_ENCODING: {
    kind: 'reject',
    message: '{part} must be percent-encoded UTF-8',
    when: 'the key or the request id in the path can not be decoded',
  },
  INVALID_TARGET: {
    kind: 'reject',
    message: 'the URL must have {character} as {encoded}',
    when: 'the URL has a raw `#` or `\\`',
  },
  HOST_MISSING: {
    kind: 'reject',
    message: 'the Host header must be given',
    when: 'a request by HTTP/1.1 has no `Host` header',
  },
  HOST_REPEATED: {
    kind: 'reject',
    message: 'the Host header must be given once',
    when: 'a request has several `Host` headers',
  },
  MALFORMED_REQUEST: {
    kind: 'reject',
    message: 'malformed request',
    when: 'the connection sends something other than HTTP',
  },
  INVALID_BODY: {
    kind: 'reject',
    message: 'the body must be {what}',
    when: 'the body of a call for many is no JSON array, or has over 1000 elements',
  },
  TOKEN_REQUIRED: {
    kind: 'reject',
    message: 'a bearer token is required',
    when: 'the request has no bearer token',
  },
  TOKEN_UNKNOWN: {
    kind: 'reject',
    message: 'unknown token',
    when: 'the token is not in `AUTH_TOKENS_FILE`',
  },
  SCOPE_MISSING: {
    kind: 'reject',
    message: 'the token lacks the scope {scope}',
    when: 'the token is for something else; an override takes the scope `configure`, too',
  },
  HOST_NOT_ALLOWED: {
    kind: 'reject',
    message: 'the host {host} is not in ALLOWED_HOSTS',
    when: '`HOST` is on loopback and there are no tokens, or `ALLOWED_HOSTS` is set, and `Host` names another',
  },
  ORIGIN_NOT_ALLOWED: {
    kind: 'reject',
    message: "the page's origin is not in ALLOWED_ORIGINS",
    when: 'a browser sends the request for a page of another origin, and there are no tokens',
  },
  KEY_NOT_ALLOWED: {
    kind: 'reject',
    message: 'the token is not for this key',
    when: 'none of the `key_patterns` of the token matches the key',
  },
  OVERRIDE_FORBIDDEN: {
    kind: 'reject',
    message: '{parameter} may not be set by requests here',
    when: '`REQUESTS_CAN_SET_RATE` or `REQUESTS_CAN_MOD_QUEUE` forbids the override',
  },
  OVERRIDE_TOO_LARGE: {
    kind: 'reject',
    message: '{parameter} must be at most {max} here',
    when: 'an override is above the ceiling of the key, see `max_requests_ceiling` and `MAX_REQUESTS_CEILING`',
  },
  KEY_UNKNOWN: {
    kind: 'reject',
    message: 'no rule matches the key',
    when: 'no rule matches the key, and `UNKNOWN_KEYS` is `refuse`',
  },
  REQUEST_NOT_FOUND: {
    kind: 'reject',
    message: 'request not found',
    when: 'the request id is unknown, was released before, or is of a window that has ended',
  },
  PATH_NOT_FOUND: {
    kind: 'reject',
    message: 'no such path: {path}',
    when: 'the service has no such path',
  },
  METHOD_NOT_ALLOWED: {
    kind: 'reject',
    message: '{method} is not allowed here',
    when: 'the path takes other methods; `HEAD /rate` is refused since it would consume',
  },
  REQUEST_TIMEOUT: {
    kind: 'reject',
    message: 'the request did not come in time',
    when: 'headers take over 10 s, or a request with its body over 30 s. Waiting for the answer has no such limit',
  },
  BODY_TOO_LARGE: {
    kind: 'reject',
    message: 'the body must be at most {max} bytes',
    when: 'the body of a call for many is over 1 MiB',
  },
  URL_TOO_LONG: {
    kind: 'reject',
    message: 'the URL must be at most {max} bytes, not {bytes}',
    when: 'the URL is over 8 KiB',
  },
  UNSUPPORTED_BODY: {
    kind: 'reject',
    message: '{header} must be {value}',
    when: 'the body of a call for many is not said to be JSON, or is compressed',
  },
  RATE_LIMIT_EXCEEDED: {
    kind: 'deny',
    message: 'rate limit exceeded',
    when: 'the limit is reached, and the request may not wait, the queue is full, or its turn does not come in time',
    retryAfter: 'window',
  },
  HEADERS_TOO_LARGE: {
    kind: 'reject',
    message: 'the headers are too large',
    when: 'the headers are over 16 KiB',
  },
  INTERNAL_ERROR: {
    kind: 'fail',
    message: 'internal error',
    when: 'Sluice has a fault; the log has its cause',
  },
  LISTING_FORBIDDEN: {
    kind: 'fail',
    message: 'the Redis user may not list keys (+scan)',
    when: 'all keys are asked for, and the Redis user lacks `+scan`',
  },
  STORE_UNAVAILABLE: {
    kind: 'fail',
    message: 'store unavailable',
    when: 'Redis can not be asked, or did not answer in time',
    retryAfter: 1,
  },
  STORE_FULL: {
    kind: 'fail',
    message: 'store full: no room for another key',
    when: 'Redis, or the embedded limiter by `MAX_KEYS` or by its memory, has no room for a new key, or for a new approval',
    retryAfter: 1,
  },
  KEY_FULL: {
    kind: 'fail',
    message: 'too many approvals of the key in this window',
    when: 'the window of the key has `MAX_IDS_PER_KEY` approvals, and its maximum is higher',
    retryAfter: 1,
  },
  SHUTTING_DOWN: {
    kind: 'fail',
    message: 'shutting down',
    when: 'the replica stops, and the request was not decided before',
    retryAfter: 1,
  },
  TOO_MANY_WAITERS: {
    kind: 'fail',
    message: 'too many waiters on this replica',
    when: '`MAX_WAITERS` requests wait on the replica, and this one would have to wait',
    retryAfter: 1,
  },
  TOO_MANY_WAITERS_OF_CALLER: {
    kind: 'fail',
    message: 'too many waiters of this caller on this replica',
    when: "the caller's waiters take all of its `waiting_share` or `MAX_WAITERS_PER_CALLER`, and one more would wait",
    retryAfter: 1,
  },
  NO_ROOM_FOR_BODY: {
    kind: 'fail',
    message: 'no room for another body',
    when: 'the bodies under way take 16 MiB of the caller, 4 MiB of the connection, or 64 MiB of the port',
    retryAfter: 1,
  },
  NOT_READY: {
    kind: 'fail',
    message: '{reasons}',
    when: '`/readyz` says no, with the reasons as plain text',
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

/** The message of an error with its placeholders filled. */
export function messageOf<Code extends ErrorCode>(code: Code, values: ErrorValues<Code>): string {
  const byName: Readonly<Record<string, string | number>> = values;
  return ERRORS[code].message.replace(/\{(\w+)\}/g, (_, name: string) => String(byName[name]));
}

/** The row of an error, with the fields that only some rows have. */
export function errorRow(code: ErrorCode): ErrorRow {
  return ERRORS[code];
}
