import type { Response } from 'express';

import type { Settings } from '../../config/settings.js';
import { retryAfterSeconds, SHADOW_HEADER } from '../../service/decision-headers.js';
import type { Peeked } from '../../service/deciding/peek-check.js';
import { policyName } from '../../rules/policy.js';
import { errorAnswer } from '../replies/error-body.js';
import { send, sendJson } from '../replies/reply.js';
import { decisionHeadersIn, denialOf, DENIED_STATUS } from './decision-answers.js';

/** Answers a peek: as the check would be answered, but with the time until its turn in place of an id. */
export type AnswerPeek = (response: Response, key: string, peeked: Peeked) => void;

/** Returns a function that answers peeks, as the settings say. */
export function peekAnswers(settings: Pick<Settings, 'RATE_LIMIT_HEADERS'>): AnswerPeek {
  const headersOf = decisionHeadersIn(settings);
  return (response, key, { peek, policy, limit }) => {
    const headers = headersOf(peek, policy, limit);
    const isDenied = peek.outcome === 'denied';
    if (isDenied && policy.isShadow) headers.push(SHADOW_HEADER, 'denied');
    if (!isDenied || policy.isShadow) {
      sendJson(response, 200, { key, waitMillis: 0 }, headers);
      return;
    }
    response.locals.errorCode = 'RATE_LIMIT_EXCEEDED';
    if (limit) response.locals.limit = limit.name;
    headers.push('Retry-After', retryAfterSeconds(peek.turnMillis));
    const waitMillis = Math.max(1, Math.ceil(peek.turnMillis));
    const body = { ...denialOf(key, limit), waitMillis };
    const violatedPolicies = [limit?.name ?? policyName(policy)];
    const answer = errorAnswer(response.req, DENIED_STATUS, body, { violatedPolicies });
    send(response, DENIED_STATUS, answer.contentType, answer.text, headers);
  };
}
