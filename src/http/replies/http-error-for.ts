import {
  ListingForbiddenError,
  UnavailableError,
  type UnavailableReason,
} from '../../limiter/errors.js';
import type { ErrorCode } from './errors.js';
import { HttpError, httpError } from './http-error.js';

/** The errors of a limiter that can't decide. */
const UNAVAILABLE = {
  store_unavailable: 'STORE_UNAVAILABLE',
  store_full: 'STORE_FULL',
  key_full: 'KEY_FULL',
  shutting_down: 'SHUTTING_DOWN',
  too_many_waiters: 'TOO_MANY_WAITERS',
} as const satisfies Record<UnavailableReason, ErrorCode>;

/** What a client is told of an error. What is no refusal of the service is a fault of it. */
export function httpErrorFor(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof ListingForbiddenError) return httpError('LISTING_FORBIDDEN', {});
  return error instanceof UnavailableError
    ? httpError(UNAVAILABLE[error.reason], {})
    : httpError('INTERNAL_ERROR', {});
}
