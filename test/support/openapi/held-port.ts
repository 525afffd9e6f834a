import type { oas31 } from 'zod-openapi';

import { ERRORS } from '../../../src/service/errors.js';
import { AnswerChecker, type SentAnswer } from './answer-checker.js';
import { UNDESCRIBED } from './undescribed.js';

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
