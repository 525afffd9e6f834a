import {
  ListingForbiddenError,
  type RequestIdConflict,
  RequestIdConflictError,
  UnavailableError,
  type UnavailableReason,
} from '../limiter/errors.js';
import { OTHER_TERM, type OtherTerm } from '../limiter/request.js';
import { type ErrorCode, ServiceError, serviceError } from './errors.js';

/**
 * Everything that can go wrong in a limiter or in its store, and the answer to it. Each way in maps the code to its own
 * status. The list in docs/reliability.md says the same; a test compares the two. The reasons of an `UnavailableError` are
 * also the `reason` of `ratelimit_failed_checks_total`.
 */
export const STORE_FAILURES = {
  store_unavailable: {
    when: 'Redis is down, can not be reached, takes no commands now (`LOADING`, `READONLY`, `NOREPLICAS`, `NOPERM` and the like), or does not answer within `STORE_TIMEOUT_MILLIS`',
    code: 'STORE_UNAVAILABLE',
  },
  store_full: {
    when: 'Redis has no memory for a new key (`OOM`), or the embedded limiter has `MAX_KEYS` keys or no memory',
    code: 'STORE_FULL',
  },
  key_full: {
    when: 'the window of the key has `MAX_IDS_PER_KEY` approvals, `MAX_HOLDS_PER_KEY` are held, or `MAX_GROUPS_PER_KEY` groups of the key count, are stopped or are paused',
    code: 'KEY_FULL',
  },
  too_many_waiters: {
    when: '`MAX_WAITERS` requests wait on the replica',
    code: 'TOO_MANY_WAITERS',
  },
  shutting_down: {
    when: 'the replica stops',
    code: 'SHUTTING_DOWN',
  },
  handed_over: {
    when: 'the replica stops, and the check has `keepMillis`',
    code: 'HANDED_OVER',
  },
  listing_forbidden: {
    when: 'the Redis user lacks `+scan`, and all keys are asked for',
    code: 'LISTING_FORBIDDEN',
  },
  fault: {
    when: 'Redis or Sluice answers in a way that it should not (`WRONGTYPE`, an error in a script)',
    code: 'INTERNAL_ERROR',
  },
} as const satisfies Record<
  UnavailableReason | 'listing_forbidden' | 'fault',
  { readonly when: string; readonly code: ErrorCode }
>;

/**
 * The error that a caller gets for anything that was thrown. An error that the service did not foresee is a fault of
 * its own.
 */
export function serviceErrorFor(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  if (error instanceof RequestIdConflictError) return CONFLICTS[error.conflict];
  if (error instanceof UnavailableError) return serviceError(STORE_FAILURES[error.reason].code, {});
  const kind = error instanceof ListingForbiddenError ? 'listing_forbidden' : 'fault';
  return serviceError(STORE_FAILURES[kind].code, {});
}

/** The errors of checks whose request id the limiter knows otherwise. */
const CONFLICTS: Readonly<Record<RequestIdConflict, ServiceError>> = {
  used: serviceError('REQUEST_ID_USED', {}),
  taken_over: serviceError('PLACE_TAKEN_OVER', {}),
  withdrawn: serviceError('PLACE_WITHDRAWN', {}),
  ...(Object.fromEntries(
    Object.entries(OTHER_TERM).map(([parameter, conflict]) => [
      conflict,
      serviceError('REQUEST_ID_CONFLICT', { parameter }),
    ]),
  ) as Record<OtherTerm, ServiceError>),
};
