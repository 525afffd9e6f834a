import { randomUUID } from 'node:crypto';

import type { Request, RequestHandler, Response } from 'express';

import type { Decision, Limiter } from '../../../limiter/limiter.js';
import type { KeyPolicy } from '../../../rules/policy.js';
import type { Access } from '../../auth/access.js';
import type { CheckElement } from '../../intake/bulk-schemas.js';
import { parseCheckElement } from '../../intake/elements.js';
import { ERRORS } from '../../replies/errors.js';
import { retryAfterSeconds } from '../../replies/headers.js';
import type { AnswerDecision, DecideCheck } from '../../deciding/decide-check.js';
import type { LatelyRefused } from '../../deciding/lately-refused.js';
import { answerMany, BulkCall, type BulkParts } from './bulk-call.js';

interface CheckParts extends BulkParts {
  readonly decide: DecideCheck;
  readonly limiter: Pick<Limiter, 'giveBack'>;
  readonly access: Pick<Access, 'demandKey'>;
  readonly lately: Pick<LatelyRefused, 'noting'>;
}

/** `POST /rate` */
export function checkMany(parts: CheckParts): RequestHandler {
  return answerMany(parts, (...call) => new CheckCall(parts, ...call));
}

class CheckCall extends BulkCall {
  // Keeps approvals out of caches: one that came from a cache would be given out twice.
  protected override readonly headers = ['Cache-Control', 'no-store'];
  /** What is held when a client disconnects is never decided. */
  protected readonly goesOnAlone = false;
  /** Of the approvals, by their places. */
  readonly #requestIds: string[] = [];
  readonly #noteAndSetResult: AnswerDecision<number>;

  constructor(
    private readonly checkParts: CheckParts,
    elements: readonly unknown[],
    request: Request,
    response: Response,
  ) {
    super(checkParts, elements, request, response);
    this.#noteAndSetResult = checkParts.lately.noting<number, Response>(
      (_response, _key, decision, policy, place) => {
        this.#setResult(decision, policy, place);
      },
    );
  }

  protected deal(element: unknown, place: number): Promise<void> {
    const check = parseCheckElement(element);
    const { response } = this;
    this.checkParts.access.demandKey(check.key, response);
    return this.checkParts.decide(check, response, this.#noteAndSetResult, place);
  }

  protected giveBack(): void {
    // Calls back for no place without an id.
    this.#requestIds.forEach((requestId, place) => {
      const { key } = this.elements[place] as CheckElement;
      this.checkParts.limiter.giveBack(key, requestId);
    });
    this.log.debug({ approvals: Object.keys(this.#requestIds).length }, 'approvals given back');
  }

  #setResult(decision: Decision, policy: KeyPolicy, place: number): void {
    if (decision.outcome === 'withdrawn') throw new Error('a check that may not wait has waited');
    const byPolicy = decision.outagePolicy ? `,"outagePolicy":"${decision.outagePolicy}"` : '';
    if (decision.outcome === 'approved') {
      const { requestId } = decision;
      this.#requestIds[place] = requestId;
      // A UUID needs no escaping: the text is made in a tenth of the time of an object's.
      this.results[place] = `{"status":200,"request_id":"${requestId}"${byPolicy}}`;
    } else if (policy.isShadow) {
      this.noteRefusal('RATE_LIMIT_EXCEEDED');
      // The approval counts nowhere: a release of it is a 404.
      const start = `{"status":200,"request_id":"${randomUUID()}"`;
      this.results[place] = `${start}${byPolicy},"shadow":"denied"}`;
    } else {
      this.noteRefusal('RATE_LIMIT_EXCEEDED');
      const { status, message } = ERRORS.RATE_LIMIT_EXCEEDED;
      const seconds = retryAfterSeconds(decision.quota.resetMillis);
      const start = `{"status":${status},"error":"${message}","retryAfter":${seconds}`;
      this.results[place] = `${start}${byPolicy}}`;
    }
  }
}
