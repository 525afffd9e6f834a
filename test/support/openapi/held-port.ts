import type { oas31 } from 'zod-openapi';

import { type ErrorCode, ERRORS } from '../../../src/service/errors.js';
import { AnswerChecker, type SentAnswer } from './answer-checker.js';

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
const UNDESCRIBED: readonly Undescribed[] = [
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
    why: 'the admin port has no checks',
    isFor: (path) => /^\/rate(\/|$)/i.test(path),
    codes: ['PATH_OF_OTHER_PORT'],
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

/** Which port of a service it is: the only one, or one of two. */
export type Part = 'all' | 'service' | 'admin';

type Responses = Readonly<Record<string, oas31.ResponseObject | oas31.ReferenceObject>>;
type Operations = Readonly<Record<string, oas31.OperationObject | undefined>>;

/** These paths are on both ports if there are two. */
const HEALTH = ['/healthz', '/readyz'];

/** Internal paths of the dashboard, which may change: test/service/http/dashboard tests them. */
const OF_THE_DASHBOARD = '/ui/';

/** A port whose answers are compared with the document of its service. */
export class HeldPort {
  readonly #checker: AnswerChecker;
  readonly #responses: Responses;
  readonly #paths: readonly (readonly [RegExp, Operations])[];

  constructor(document: oas31.OpenAPIObject, part: Part) {
    this.#checker = new AnswerChecker(document);
    this.#responses = document.components?.responses ?? {};
    this.#paths = Object.entries(document.paths ?? {})
      .filter(([path, { servers }]) => {
        // The document names a server for paths that are not on its own port.
        const its = servers === undefined ? 'admin' : 'service';
        return part === 'all' || part === its || HEALTH.includes(path);
      })
      .map(([path, item]) => [
        new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
        item as Operations,
      ]);
  }

  /** The flaws of an answer to a request for `target`. */
  flawsOf(target: string, answer: SentAnswer): string[] {
    const path = target.replace(/^[a-z]+:\/\/[^/?#]*/i, '').replace(/\?[^]*$/, '');
    const operations = this.#paths.find(([pattern]) => pattern.test(path))?.[1];
    if (path.startsWith(OF_THE_DASHBOARD)) return [];
    const operation = operations?.[answer.method.toLowerCase()];
    if (!operation) return this.#flawsOfUndescribed(path, operations !== undefined, answer);
    const responses = operation.responses as Responses;
    const described = responses[String(answer.status)];
    return described ? this.#checker.flawsOf(answer, described) : ['is not in the document'];
  }

  #flawsOfUndescribed(path: string, isPath: boolean, answer: SentAnswer): string[] {
    const isAsDescribed = UNDESCRIBED.filter(({ isFor }) => isFor(path, isPath))
      .flatMap(({ codes }) => codes)
      .filter((code) => ERRORS[code].status === answer.status)
      .some((code) => this.#checker.flawsOf(answer, this.#responses[code]!).length === 0);
    return isAsDescribed ? [] : ['is neither in the document nor an undescribed answer'];
  }
}
