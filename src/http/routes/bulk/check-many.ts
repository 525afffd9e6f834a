import { randomUUID } from 'node:crypto';

import type { RequestHandler } from 'express';

import type { CheckElement } from '../../../api/bulk-schemas.js';
import { type CheckOrder, isVerdict, type Limiter } from '../../../limiter/limiter.js';
import type { Access } from '../../../service/callers/access.js';
import { retryAfterSeconds } from '../../../service/decision-headers.js';
import type { Decided, DecideCheck } from '../../../service/deciding/decide-check.js';
import { millisToRetry } from '../../../service/denying-limit.js';
import { ERRORS } from '../../../service/errors.js';
import { parseCheckElement } from '../../intake/elements.js';
import { httpStatusOf } from '../../replies/error-statuses.js';
import { rejectTooManyHits } from '../too-many-hits.js';
import { answerMany, BulkCall, type BulkParts } from './bulk-call.js';

interface CheckParts extends BulkParts {
  readonly decide: DecideCheck;
  readonly limiter: Pick<Limiter, 'giveBack'>;
  readonly access: Pick<Access, 'demandKey'>;
}

const DENIED_STATUS = httpStatusOf('RATE_LIMIT_EXCEEDED');

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

  protected deal(
    element: unknown,
    index: number,
    onDone: () => void,
    onFailed: (error: unknown) => void,
  ): void {
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
  }

  protected giveBack(): void {
    // forEach skips indexes without an approval.
    this.#claims.forEach((claim, index) => {
      const { key } = this.elements[index] as CheckElement;
      this.parts.limiter.giveBack(key, claim);
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
      const start = `{"status":200,"request_id":"${check.requestId ?? randomUUID()}"`;
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
