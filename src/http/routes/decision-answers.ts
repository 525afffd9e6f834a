import { randomUUID } from 'node:crypto';

import type { Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';
import type { Decision, Limiter } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { ERRORS } from '../replies/errors.js';
import { OUTAGE_POLICY_HEADER, retryAfterSeconds, SHADOW_HEADER } from '../replies/headers.js';
import { logSubject } from '../replies/log-subject.js';
import { rateLimitHeadersIn } from '../replies/rate-limit-headers.js';
import { JSON_TYPE, send } from '../replies/reply.js';
import { CLIENT_CLOSED_REQUEST } from '../replies/request-log.js';
import type { AnswerDecision } from '../deciding/decide-check.js';
import { logShadow } from '../deciding/shadow-log.js';

const DENIAL = ERRORS.RATE_LIMIT_EXCEEDED;

type Approval = Extract<Decision, { readonly outcome: 'approved' }>;
type Denial = Extract<Decision, { readonly outcome: 'denied' }>;

export interface AnswerParts {
  readonly limiter: Pick<Limiter, 'giveBack'>;
  readonly settings: Pick<Settings, 'LOG_4XX' | 'RATE_LIMIT_HEADERS'>;
  readonly logger: Logger;
}

/** @returns what answers checks with their decisions, as the settings say; a preference that was applied is named */
export function decisionAnswers({
  limiter,
  settings,
  logger,
}: AnswerParts): AnswerDecision<string | undefined> {
  const addRateLimitHeaders = rateLimitHeadersIn(settings.RATE_LIMIT_HEADERS);

  const headersFor = (
    decision: Approval | Denial,
    policy: KeyPolicy,
    preference: string | undefined,
  ): (string | number)[] => {
    // Keeps approvals out of caches: one that came from a cache would be given out twice.
    const headers: (string | number)[] = ['Cache-Control', 'no-store'];
    if (decision.quota) addRateLimitHeaders(headers, decision.quota, policy);
    if (decision.outagePolicy) headers.push(OUTAGE_POLICY_HEADER, decision.outagePolicy);
    if (preference !== undefined) headers.push('Preference-Applied', preference);
    return headers;
  };

  const deny = (
    response: Response,
    key: string,
    denial: Denial,
    policy: KeyPolicy,
    headers: (string | number)[],
  ): void => {
    if (policy.isShadow) {
      if (settings.LOG_4XX) logShadow(logOf(response, logger), key, denial.reason);
      headers.push(SHADOW_HEADER, 'denied');
      // The approval counts nowhere: a release of it is a 404.
      sendApproval(response, randomUUID(), headers);
      return;
    }
    response.locals.errorCode = 'RATE_LIMIT_EXCEEDED';
    const { quota, turnMillis = quota.resetMillis } = denial;
    headers.push('Retry-After', retryAfterSeconds(turnMillis));
    const body = `{"error":"${DENIAL.message}","key":${JSON.stringify(key)}}`;
    send(response, DENIAL.status, JSON_TYPE, body, headers);
  };

  return (response, key, decision, policy, preference) => {
    switch (decision.outcome) {
      case 'approved': {
        const { requestId } = decision;
        if (response.req.socket.destroyed) {
          logOf(response, logger).debug({ key, requestId }, 'nobody uses the approval; given back');
          limiter.giveBack(key, requestId);
          return;
        }
        sendApproval(response, requestId, headersFor(decision, policy, preference));
        return;
      }
      case 'denied':
        deny(response, key, decision, policy, headersFor(decision, policy, preference));
        return;
      case 'withdrawn':
        logOf(response, logger).info(
          { key, status: CLIENT_CLOSED_REQUEST },
          'client disconnected while waiting',
        );
    }
  };
}

/** @param requestId a UUID, which needs no escaping: the text is made in a tenth of the time of an object's */
function sendApproval(
  response: Response,
  requestId: string,
  headers: readonly (string | number)[],
): void {
  send(response, 200, JSON_TYPE, `{"request_id":"${requestId}"}`, headers);
}

function logOf(response: Response, logger: Logger): Logger {
  return logger.child(logSubject(response));
}
