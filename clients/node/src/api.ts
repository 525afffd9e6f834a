/** What Sluice takes and answers, as far as this client uses it: see docs/checks.md. A test compares it with the service. */

import type { AskOptions, RequestOptions } from './options.js';

/** An element of `POST /rate`, and the parameters of a check that is sent alone. */
export interface CheckElement extends Omit<AskOptions, keyof RequestOptions> {
  key: string;
  requestId?: string | undefined;
  holder?: string | undefined;
}

/** An element of `DELETE /rate`. */
export interface ReleaseElement {
  key: string;
  request_id: string;
}

interface ElementError {
  status: 400 | 403 | 409 | 500 | 503;
  error: string;
  code: ErrorCode;
  /** In seconds. */
  retryAfter?: number | undefined;
}

/** An element of the answer to `POST /rate`. */
export type CheckResult =
  | {
      status: 200;
      request_id: string;
      outagePolicy?: 'allow' | 'local' | undefined;
      shadow?: 'denied' | undefined;
    }
  | {
      status: 429;
      error: string;
      code: ErrorCode;
      /** In seconds. */
      retryAfter: number;
      limit?: string | undefined;
      outagePolicy?: 'allow' | 'local' | undefined;
    }
  | ElementError;

/** An element of the answer to `DELETE /rate`. */
export type ReleaseResult =
  { status: 200 } | { status: 404; error: string; code: ErrorCode } | ElementError;

/** Names an error. The service may know more than these. */
export type ErrorCode = KnownErrorCode | (string & {});

/** The errors that this client tells apart. */
export type KnownErrorCode =
  | UncountedErrorCode
  | 'RATE_LIMIT_EXCEEDED'
  | 'REQUEST_NOT_FOUND'
  | 'REQUEST_ID_USED'
  | 'PLACE_TAKEN_OVER';

/** The errors with status 503 that are certain to have counted nothing, so that a second request can't count twice. */
export type UncountedErrorCode =
  'STORE_FULL' | 'KEY_FULL' | 'SHUTTING_DOWN' | 'TOO_MANY_WAITERS' | 'TOO_MANY_WAITERS_OF_CALLER';
