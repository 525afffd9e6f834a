import { newUuid } from '../../common/uuid.js';

import type { Request, RequestHandler, Response } from 'express';
import type { Logger } from 'pino';

import type { CheckElement } from '../../api/bulk-schemas.js';
import type { Settings } from '../../config/settings.js';
import { type CheckOrder, isVerdict, type Operator } from '../../limiter/limiter.js';
import type { Access } from '../../service/callers/access.js';
import type { DecideCheck, Decided } from '../../service/deciding/decide-check.js';
import { inBulk } from '../../service/deciding/decide-many.js';
import type { BulkName, Release, RunBulk } from '../../service/deciding/traced-decisions.js';
import { retryAfterSeconds } from '../../service/decision-headers.js';
import { millisToRetry } from '../../service/denying-limit.js';
import { type ErrorCode, errorRow, ERRORS } from '../../service/errors.js';
import { logOf } from '../../service/request-context.js';
import { serviceErrorFor } from '../../service/store-failures.js';
import { hasDisconnected } from '../intake/connection-state.js';
import { parseCheckElement, parseReleaseElement } from '../intake/elements.js';
import { type ArrayParts, withJsonArray } from '../intake/json-array.js';
import { rejectParameters } from '../intake/parameters.js';
import { type Headers, JSON_TYPE, send } from '../replies/reply.js';
import { rejectTooManyHits } from './check-rate.js';

interface BulkParts extends ArrayParts {
  readonly runBulk: RunBulk;
  readonly settings: Pick<Settings, 'LOG_4XX' | 'LOG_5XX'>;
  readonly logger: Logger;
}

/** Returns a handler that answers each bulk request by the call that `callOf` makes of its elements. */
function answerMany(
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

/** Sets the result of an element and calls `onDone`; or throws or calls `onFailed`, if it has none. */
type Deal = (
  element: unknown,
  index: number,
  onDone: () => void,
  onFailed: (error: unknown) => void,
) => void;

/**
 * A bulk request on its way to its answer, which has one result for each element, in their order. A failure of one
 * element does not affect the others.
 */
abstract class BulkCall<Parts extends BulkParts = BulkParts> {
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

  protected abstract readonly deal: Deal;

  /** Whether elements begin after the client has disconnected. */
  protected abstract readonly continuesAfterDisconnect: boolean;

  /** Called instead of an answer if the client has disconnected. */
  protected abstract giveBack(): void;

  async run(): Promise<void> {
    const { elements } = this;
    await inBulk(elements.length, {
      taker: this.response.locals.context,
      slices: this.parts.slices,
      deal: (index, onDone, onFailed) => this.deal(elements[index], index, onDone, onFailed),
      fail: (index, error) => this.#fail(index, error),
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
      status: ERRORS[code].status,
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

interface CheckParts extends BulkParts {
  readonly decide: DecideCheck;
  readonly limiter: Operator<'giveBack'>;
  readonly access: Pick<Access, 'demandKey'>;
}

const DENIED_STATUS = ERRORS.RATE_LIMIT_EXCEEDED.status;

/** `POST /rate` */
export function checkMany(parts: CheckParts): RequestHandler {
  return answerMany('check many', parts, (...call) => new CheckCall(parts, ...call));
}

class CheckCall extends BulkCall<CheckParts> {
  // Keeps approvals out of caches, which would give them out twice.
  protected override readonly headers = ['Cache-Control', 'no-store'];
  /** A check that has not begun when its client disconnects is never decided. */
  protected readonly continuesAfterDisconnect = false;
  readonly #order: CheckOrder = {};
  /** What gives the approvals back, by the indexes of their elements. */
  readonly #claims: string[] = [];

  protected readonly deal: Deal = (element, index, onDone, onFailed) => {
    const check = parseCheckElement(element, this.#order);
    const { context } = this.response.locals;
    this.parts.access.demandKey(check.key, context);
    const onDecided = (decided: Decided): void => {
      try {
        rejectTooManyHits(check, decided);
        this.#setResult(decided, index);
      } catch (error) {
        onFailed(error);
        return;
      }
      onDone();
    };
    this.parts.decide(check, context, onDecided, onFailed);
  };

  protected giveBack(): void {
    // forEach skips indexes without an approval.
    this.#claims.forEach((claim, index) => {
      const { key } = this.elements[index] as CheckElement;
      void this.parts.limiter.ask('giveBack', { key, claim });
    });
    this.log.debug({ approvals: Object.keys(this.#claims).length }, 'approvals given back');
  }

  #setResult({ decision, policy, limit, check }: Decided, index: number): void {
    if (!isVerdict(decision)) throw new Error('a check that may not wait has waited');
    const { outagePolicy } = decision;
    const byPolicy = outagePolicy ? `,"outagePolicy":"${outagePolicy}"` : '';
    if (decision.outcome === 'approved') {
      const { claim = decision.requestId } = decision;
      this.#claims[index] = claim;
      // A UUID needs no escaping: building the text takes a tenth of the time of serializing an object.
      this.results[index] = `{"status":200,"request_id":"${decision.requestId}"${byPolicy}}`;
    } else if (policy.isShadow) {
      this.noteError('RATE_LIMIT_EXCEEDED');
      // Nothing counts this approval, so that a release of it is a 404.
      const start = `{"status":200,"request_id":"${check.requestId ?? newUuid()}"`;
      this.results[index] = `${start}${byPolicy},"shadow":"denied"}`;
    } else {
      this.noteError('RATE_LIMIT_EXCEEDED');
      const { message } = ERRORS.RATE_LIMIT_EXCEEDED;
      const seconds = retryAfterSeconds(millisToRetry(decision, limit, check.hits));
      const start = `{"status":${DENIED_STATUS},"error":"${message}","code":"RATE_LIMIT_EXCEEDED","retryAfter":${seconds}`;
      const byLimit = limit ? `,"limit":"${limit.name}"` : '';
      this.results[index] = `${start}${byLimit}${byPolicy}}`;
    }
  }
}

interface ReleaseParts extends BulkParts {
  readonly release: Release;
  readonly access: Pick<Access, 'demandKey'>;
}

const RELEASED = '{"status":200}';
const NOT_FOUND = JSON.stringify({
  status: ERRORS.REQUEST_NOT_FOUND.status,
  error: ERRORS.REQUEST_NOT_FOUND.message,
  code: 'REQUEST_NOT_FOUND',
});

/** `DELETE /rate` */
export function releaseMany(parts: ReleaseParts): RequestHandler {
  return answerMany('release many', parts, (...call) => new ReleaseCall(parts, ...call));
}

class ReleaseCall extends BulkCall<ReleaseParts> {
  /** A release that the client has asked for is done, since nobody else would do it. */
  protected readonly continuesAfterDisconnect = true;

  protected readonly deal: Deal = (element, index, onDone, onFailed) => {
    const { key, request_id: requestId } = parseReleaseElement(element);
    const { access, release } = this.parts;
    const { context } = this.response.locals;
    access.demandKey(key, context);
    release(key, requestId, context).then((isReleased) => {
      if (!isReleased) this.noteError('REQUEST_NOT_FOUND');
      this.results[index] = isReleased ? RELEASED : NOT_FOUND;
      onDone();
    }, onFailed);
  };

  protected giveBack(): void {
    // Released approvals stay released.
  }
}
