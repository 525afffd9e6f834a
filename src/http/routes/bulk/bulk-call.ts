import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../../../config/settings.js';
import { inBulk } from '../../../service/deciding/decide-in-bulk.js';
import type { BulkName, RunBulk } from '../../../service/deciding/traced-decisions.js';
import { errorRow, type ErrorCode } from '../../../service/errors.js';
import { logOf } from '../../../service/request-log.js';
import { serviceErrorFor } from '../../../service/store-failures.js';
import { hasDisconnected } from '../../intake/connection-state.js';
import { type ArrayParts, withJsonArray } from '../../intake/json-array.js';
import { rejectParameters } from '../../intake/parameters.js';
import { httpStatusOf } from '../../replies/error-statuses.js';
import type { Headers } from '../../replies/headers.js';
import { JSON_TYPE, send } from '../../replies/reply.js';

export interface BulkParts extends ArrayParts {
  readonly runBulk: RunBulk;
  readonly settings: Pick<Settings, 'LOG_4XX' | 'LOG_5XX'>;
  readonly logger: Logger;
}

/** Returns a handler that answers each bulk request by the call that `callOf` makes of its elements. */
export function answerMany(
  name: BulkName,
  parts: BulkParts,
  callOf: (elements: readonly unknown[], request: Request, response: Response) => BulkCall,
): RequestHandler {
  return (request, response) =>
    parts.runBulk(name, response.locals.context, async () => {
      rejectParameters(request.query);
      await withJsonArray(request, response, parts, (elements) =>
        callOf(elements, request, response).run(),
      );
    });
}

/**
 * A bulk request on its way to its answer, which has one result for each element, in their order. A failure of one
 * element does not affect the others.
 */
export abstract class BulkCall<Parts extends BulkParts = BulkParts> {
  /** The headers of the answer. */
  protected readonly headers: Headers = [];
  /** The results as JSON, by the indexes of the elements. */
  protected readonly results: string[] = [];
  /** How many elements were denied or rejected, or failed, by their errors. */
  readonly #errors: Partial<Record<ErrorCode, number>> = {};

  constructor(
    protected readonly parts: Parts,
    protected readonly elements: readonly unknown[],
    protected readonly request: Request,
    protected readonly response: Response,
  ) {}

  /** Sets the result of an element and calls `onDone`; or throws or calls `onFailed`, if it has none. */
  protected abstract deal(
    element: unknown,
    index: number,
    onDone: () => void,
    onFailed: (error: unknown) => void,
  ): void;

  /** Whether elements begin after the client has disconnected. */
  protected abstract readonly continuesAfterDisconnect: boolean;

  /** Called instead of an answer if the client has disconnected. */
  protected abstract giveBack(): void;

  /** Deals with all elements, and answers. */
  async run(): Promise<void> {
    const { elements } = this;
    await inBulk(elements.length, {
      taker: this.response.locals.context,
      slices: this.parts.slices,
      deal: (index, onDone, onFailed) => {
        this.deal(elements[index], index, onDone, onFailed);
      },
      fail: (index, error) => {
        this.#fail(index, error);
      },
      mayBegin: () => this.continuesAfterDisconnect || !this.isDisconnected,
    });
    this.#logErrors();
    if (this.isDisconnected) this.giveBack();
    else send(this.response, 200, JSON_TYPE, `[${this.results.join()}]`, this.headers);
  }

  protected get isDisconnected(): boolean {
    return hasDisconnected(this.request.socket);
  }

  protected get log(): Logger {
    return logOf(this.response.locals.context, this.parts.logger);
  }

  /** Adds an error to the counts in the log. */
  protected noteError(code: ErrorCode): void {
    this.#errors[code] = (this.#errors[code] ?? 0) + 1;
  }

  /** The element gets the status and the message that a single request would get. */
  #fail(index: number, error: unknown): void {
    const { code, message } = serviceErrorFor(error);
    const { retryAfter } = errorRow(code);
    this.noteError(code);
    if (code === 'INTERNAL_ERROR' && this.parts.settings.LOG_5XX) {
      this.log.error(
        { err: error, errorCode: code, place: index },
        'element of a bulk request failed',
      );
    }
    this.results[index] = JSON.stringify({
      status: httpStatusOf(code),
      error: message,
      code,
      retryAfter,
    });
  }

  #logErrors(): void {
    const errors = this.#errors;
    if (!this.parts.settings.LOG_4XX || Object.keys(errors).length === 0) return;
    this.log.info({ errors }, 'elements of a bulk request denied or rejected');
  }
}
