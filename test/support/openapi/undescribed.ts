import type { ErrorCode } from '../../../src/service/errors.js';

/** Answers that no operation of a document can have. */
export interface Undescribed {
  readonly why: string;
  /** @param isPath whether the path takes other methods */
  readonly isFor: (path: string, isPath: boolean) => boolean;
  readonly codes: readonly ErrorCode[];
}

/**
 * A document lists the paths and methods that there are, and nothing of others. What is no request at all has no path:
 * answers to it never come here (test/service/http/unreadable-requests.test.ts has them).
 */
export const UNDESCRIBED: readonly Undescribed[] = [
  {
    why: 'any target may be refused before its path is looked at',
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
    codes: ['PATH_NOT_FOUND'],
  },
  {
    why: 'the path takes other methods',
    isFor: (_path, isPath) => isPath,
    codes: ['METHOD_NOT_ALLOWED'],
  },
  {
    why: 'one guard is in front of all below /debug, whether there is such a path and method or not',
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
