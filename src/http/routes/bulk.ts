import type { RequestHandler, Response } from 'express';
import type { Logger } from 'pino';

import { newUuid } from '../../common/uuid.js';
import type { CheckElement } from '../../api/bulk-schemas.js';
import { type CheckOrder, isVerdict } from '../../limiter/limiter.js';
import type { BodyBudget } from '../../service/callers/body-budget.js';
import type { Decided } from '../../service/deciding/decide-check.js';
import { retryAfterSeconds } from '../../service/decision-headers.js';
import { millisToRetry } from '../../service/denying-limit.js';
import { type ErrorCode, errorRow, ERRORS, serviceError } from '../../service/errors.js';
import { type ConnectedRequest, logOf } from '../../service/request-context.js';
import type { Service } from '../../service/service.js';
import { serviceErrorFor } from '../../service/store-failures.js';
import { hasDisconnected } from '../intake/connection-state.js';
import { parseCheckElement, parseReleaseElement } from '../intake/elements.js';
import { withJsonArray } from '../intake/json-array.js';
import { rejectParameters } from '../intake/parameters.js';
import { type Headers, JSON_TYPE, send } from '../replies/reply.js';
import { rejectTooManyHits } from './check-rate.js';
import type { HttpParts } from './http-parts.js';

/** What is done with the elements of a bulk request. */
interface Bulk {
  readonly headers?: Headers;
  /**
   * Deals with an element, and calls `onDone` with its result as JSON and with the error in that, if there is one; or throws,
   * or calls `onFailed`.
   */
  deal(
    element: unknown,
    index: number,
    onDone: (result: string, code?: ErrorCode) => void,
    onFailed: (error: unknown) => void,
  ): void;
  /** Called instead of an answer if the client has disconnected. If it is missing, elements begin even then. */
  giveBack?(): void;
}

/** Returns a handler that answers each bulk request by what `begin` makes of its elements. */
function answerMany(
  name: Parameters<Service['runBulk']>[0],
  parts: HttpParts,
  budget: BodyBudget,
  begin: (elements: readonly unknown[], context: ConnectedRequest) => Bulk,
): RequestHandler {
  const { runBulk, slices } = parts.service;
  return (request, response) => {
    const { context } = response.locals;
    return runBulk(name, context, async () => {
      rejectParameters(request.query);
      await withJsonArray(request, response, { budget, slices }, (elements) =>
        new BulkCall(parts, elements, response, begin(elements, context)).run(),
      );
    });
  };
}

/**
 * A bulk request on its way to its answer, which has one result for each element, in their order. A failure of one
 * element does not affect the others.
 */
class BulkCall {
  /** The results as JSON, by the indexes of the elements. */
  readonly #results: string[] = [];
  /** How many elements were denied or rejected, or failed, by their errors. */
  readonly #errors: Partial<Record<ErrorCode, number>> = {};

  constructor(
    private readonly parts: HttpParts,
    private readonly elements: readonly unknown[],
    private readonly response: Response,
    private readonly bulk: Bulk,
  ) {}

  async run(): Promise<void> {
    await this.#dealWithAll();
    const errors = this.#errors;
    if (this.parts.settings.LOG_4XX && Object.keys(errors).length > 0) {
      this.#log.info({ errors }, 'elements of a bulk request denied or rejected');
    }
    if (this.#isDisconnected) this.bulk.giveBack?.();
    else send(this.response, 200, JSON_TYPE, `[${this.#results.join()}]`, this.bulk.headers);
  }

  /**
   * Deals with the elements in their order, as fast as the slices allow.
   * @returns when every element that began is dealt with
   */
  #dealWithAll(): Promise<void> {
    const { elements, parts, response, bulk } = this;
    // Promises of the elements would cost a bulk request of 50 a third of its time.
    return new Promise((resolve) => {
      /** The elements that have begun and are not dealt with, and one more until all have begun. */
      let pending = 1;
      const settled = (): void => {
        pending -= 1;
        if (pending === 0) resolve();
      };
      const begin = async (): Promise<void> => {
        for (let begun = 0; begun < elements.length && !(bulk.giveBack && this.#isDisconnected);) {
          const left = elements.length - begun;
          const end = begun + (await parts.service.slices.next(response.locals.context, left));
          pending += end - begun;
          for (; begun < end; begun += 1) this.#deal(begun, settled);
        }
        settled();
      };
      void begin();
    });
  }

  #deal(index: number, settled: () => void): void {
    const done = (result: string, code?: ErrorCode): void => {
      if (code) this.#errors[code] = (this.#errors[code] ?? 0) + 1;
      this.#results[index] = result;
      settled();
    };
    // The element gets the status and the message that a single request would get.
    const fail = (error: unknown): void => {
      const { code, message } = serviceErrorFor(error);
      const { status, retryAfter } = errorRow(code);
      if (code === 'INTERNAL_ERROR' && this.parts.settings.LOG_5XX) {
        const line = { err: error, errorCode: code, place: index };
        this.#log.error(line, 'element of a bulk request failed');
      }
      done(JSON.stringify({ status, error: message, code, retryAfter }), code);
    };
    try {
      this.bulk.deal(this.elements[index], index, done, fail);
    } catch (error) {
      fail(error);
    }
  }

  get #isDisconnected(): boolean {
    return hasDisconnected(this.response.req.socket);
  }

  get #log(): Logger {
    return logOf(this.response.locals.context, this.parts.logger);
  }
}

/** `POST /rate` */
export function checkMany(parts: HttpParts, budget: BodyBudget): RequestHandler {
  const { access, decide, limiter } = parts.service;
  return answerMany('check many', parts, budget, (elements, context) => {
    const order: CheckOrder = {};
    /** What gives the approvals back, by the indexes of their elements. */
    const claims: string[] = [];
    return {
      // Keeps approvals out of caches, which would give them out twice.
      headers: ['Cache-Control', 'no-store'],

      deal: (element, index, onDone, onFailed) => {
        const check = parseCheckElement(element, order);
        access.demandKey(check.key, context);
        const onDecided = (decided: Decided): void => {
          const { decision } = decided;
          try {
            rejectTooManyHits(decided);
            const [result, code] = resultOf(decided);
            if (decision.outcome === 'approved')
              claims[index] = decision.claim ?? decision.requestId;
            onDone(result, code);
          } catch (error) {
            onFailed(error);
          }
        };
        decide(check, context, onDecided, onFailed);
      },

      // A check that has not begun when its client disconnects is never decided.
      giveBack: () => {
        // forEach skips indexes without an approval.
        claims.forEach((claim, index) => {
          const { key } = elements[index] as CheckElement;
          void limiter.ask('giveBack', { key, claim });
        });
        const approvals = Object.keys(claims).length;
        logOf(context, parts.logger).debug({ approvals }, 'approvals given back');
      },
    };
  });
}

/** The result of a check as JSON, and the error if it is denied. */
function resultOf({ decision, policy, limit, check }: Decided): [string, ErrorCode?] {
  if (!isVerdict(decision)) throw new Error('a check that may not wait has waited');
  const { outagePolicy } = decision;
  const byPolicy = outagePolicy ? `,"outagePolicy":"${outagePolicy}"` : '';
  if (decision.outcome === 'approved') {
    // A UUID needs no escaping: building the text takes a tenth of the time of serializing an object.
    return [`{"status":200,"request_id":"${decision.requestId}"${byPolicy}}`];
  }
  const code = 'RATE_LIMIT_EXCEEDED';
  if (policy.isShadow) {
    // Nothing counts this approval, so that a release of it is a 404.
    const start = `{"status":200,"request_id":"${check.requestId ?? newUuid()}"`;
    return [`${start}${byPolicy},"shadow":"denied"}`, code];
  }
  const { status, message } = ERRORS[code];
  const seconds = retryAfterSeconds(millisToRetry(decision, limit, check.hits));
  const start = `{"status":${status},"error":"${message}","code":"${code}","retryAfter":${seconds}`;
  const byLimit = limit ? `,"limit":"${limit.name}"` : '';
  return [`${start}${byLimit}${byPolicy}}`, code];
}

/** `DELETE /rate` */
export function releaseMany(parts: HttpParts, budget: BodyBudget): RequestHandler {
  const { access, release } = parts.service;
  // A release that the client has asked for is done, since nobody else would do it, and released approvals stay released.
  return answerMany('release many', parts, budget, (_elements, context) => ({
    deal: (element, _index, onDone, onFailed) => {
      const { key, request_id: requestId } = parseReleaseElement(element);
      access.demandKey(key, context);
      release(key, requestId, context).then((isReleased) => {
        if (isReleased) onDone('{"status":200}');
        else onFailed(serviceError('REQUEST_NOT_FOUND', {}));
      }, onFailed);
    },
  }));
}
