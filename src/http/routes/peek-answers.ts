import type { Response } from 'express';

import type { Settings } from '../../config/settings.js';
import { SHADOW_HEADER } from '../../service/decision-headers.js';
import type { Peeked } from '../../service/deciding/peek-check.js';
import { sendJson } from '../replies/reply.js';
import { decisionHeadersIn, sendDenial } from './decision-answers.js';

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
    const { turnMillis } = peek;
    const waitMillis = Math.max(1, Math.ceil(turnMillis));
    sendDenial(response, key, { policy, limit, retryMillis: turnMillis, headers, waitMillis });
  };
}
