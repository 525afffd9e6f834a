import type { ErrorCode } from '../../service/errors.js';

/** How HTTP answers one error. */
interface HttpError {
  readonly status: number;
  /** Another header of the answer. With `Connection` the answer is the last on its connection. */
  readonly header?: 'WWW-Authenticate' | 'Allow' | 'Connection';
  /** The form of the body, if that is not an object with `error`, and `key` if the request has one. */
  readonly body?: 'without key' | 'plain text';
}

export const HTTP_ERRORS = {
  INVALID_PARAMETER: { status: 400 },
  UNKNOWN_PARAMETER: { status: 400 },
  TOO_MANY_HITS: { status: 400 },
  WINDOW_NOT_SETTABLE: { status: 400 },
  INVALID_KEY_LENGTH: { status: 400 },
  INVALID_ENCODING: { status: 400 },
  INVALID_TARGET: { status: 400, body: 'without key' },
  HOST_MISSING: { status: 400 },
  HOST_REPEATED: { status: 400 },
  MALFORMED_REQUEST: { status: 400, header: 'Connection', body: 'without key' },
  INVALID_BODY: { status: 400, body: 'without key' },
  PARAMETERS_IN_BODY: { status: 400 },
  TOKEN_REQUIRED: { status: 401, header: 'WWW-Authenticate' },
  TOKEN_UNKNOWN: { status: 401, header: 'WWW-Authenticate' },
  SCOPE_MISSING: { status: 403, header: 'WWW-Authenticate' },
  HOST_NOT_ALLOWED: { status: 403 },
  ORIGIN_NOT_ALLOWED: { status: 403 },
  KEY_NOT_ALLOWED: { status: 403 },
  OVERRIDE_FORBIDDEN: { status: 403 },
  HOLD_FORBIDDEN: { status: 403 },
  OVERRIDE_TOO_LARGE: { status: 403 },
  CORRECTION_TOO_LARGE: { status: 403 },
  KEY_UNKNOWN: { status: 403 },
  REQUEST_NOT_FOUND: { status: 404 },
  HOLDER_NOT_FOUND: { status: 404 },
  PATH_NOT_FOUND: { status: 404, body: 'without key' },
  SLASH_IN_KEY: { status: 404, body: 'without key' },
  METHOD_NOT_ALLOWED: { status: 405, header: 'Allow' },
  CHECK_HAS_REQUEST_ID: { status: 405, header: 'Allow' },
  REQUEST_ID_USED: { status: 409 },
  PLACE_TAKEN_OVER: { status: 409 },
  PLACE_WITHDRAWN: { status: 409 },
  REQUEST_ID_CONFLICT: { status: 409 },
  REQUEST_TIMEOUT: { status: 408, header: 'Connection', body: 'without key' },
  BODY_TOO_LARGE: { status: 413, body: 'without key' },
  URL_TOO_LONG: { status: 414 },
  UNSUPPORTED_BODY: { status: 415, body: 'without key' },
  RATE_LIMIT_EXCEEDED: { status: 429 },
  HEADERS_TOO_LARGE: { status: 431, header: 'Connection', body: 'without key' },
  INTERNAL_ERROR: { status: 500 },
  LISTING_FORBIDDEN: { status: 501, body: 'without key' },
  STORE_UNAVAILABLE: { status: 503 },
  STORE_FULL: { status: 503 },
  KEY_FULL: { status: 503 },
  SHUTTING_DOWN: { status: 503 },
  HANDED_OVER: { status: 503, header: 'Connection' },
  TOO_MANY_WAITERS: { status: 503 },
  TOO_MANY_WAITERS_OF_CALLER: { status: 503 },
  NO_ROOM_FOR_BODY: { status: 503, body: 'without key' },
  NOT_READY: { status: 503, body: 'plain text' },
} as const satisfies Record<ErrorCode, HttpError>;

/** The answer to an error, with the fields that only some have. */
export function httpErrorOf(code: ErrorCode): HttpError {
  return HTTP_ERRORS[code];
}

/** The status of an error, for the logs of all ways in. */
export function httpStatusOf(code: ErrorCode): number {
  return HTTP_ERRORS[code].status;
}
