import type { ErrorCode } from '../../../src/service/errors.js';

/** Answers that no operation of a document can have. */
export interface Undescribed {
  readonly why: string;
  /** @param isPath whether the path allows other methods */
  readonly isFor: (path: string, isPath: boolean) => boolean;
  readonly codes: readonly ErrorCode[];
}

/**
 * A document lists only existing paths and methods. Input that is not a request has no path, and the answers to it
 * never come here (test/service/http/unreadable-requests.test.ts has them).
 */
export const UNDESCRIBED: readonly Undescribed[] = [
  {
    why: 'any target may be rejected before its path is read',
    isFor: () => true,
    codes: [
      'INVALID_TARGET',
      'HOST_MISSING',
      'HOST_REPEATED',
      'HOST_NOT_ALLOWED',
      'URL_TOO_LONG',
      'INVALID_ENCODING',
    ],
  },
  {
    why: 'the service has no such path',
    isFor: (_path, isPath) => !isPath,
    codes: ['PATH_NOT_FOUND', 'SLASH_IN_KEY'],
  },
  {
    why: 'the path allows other methods',
    isFor: (_path, isPath) => isPath,
    codes: ['METHOD_NOT_ALLOWED', 'CHECK_HAS_REQUEST_ID'],
  },
  {
    why: 'one guard is in front of all paths and methods below /debug, known or not',
    isFor: (path) => /^\/debug(\/|$)/i.test(path),
    codes: [
      'TOKEN_REQUIRED',
      'TOKEN_UNKNOWN',
      'SCOPE_MISSING',
      'KEY_NOT_ALLOWED',
      'ORIGIN_NOT_ALLOWED',
    ],
  },
];
