import type { NextFunction, Response } from 'express';

import { newUuid } from '../../common/uuid.js';
import type { WaitingBody } from '../../api/answers.js';
import type { Settings } from '../../config/settings.js';
import { kindOf } from '../../limiter/kinds/kinds.js';
import { isVerdict } from '../../limiter/limiter.js';
import { capacityOf } from '../../limiter/limits.js';
import { policyName } from '../../rules/policy.js';
import type { Decided, Peeked } from '../../service/deciding/decide-check.js';
import type { AskedCheck } from '../../service/deciding/lists-of-checks.js';
import {
  OUTAGE_POLICY_HEADER,
  rateLimitHeadersIn,
  retryAfterSeconds,
  SHADOW_HEADER,
} from '../../service/decision-headers.js';
import { limitBelow, millisToRetry } from '../../service/denying-limit.js';
import { ERRORS, serviceError } from '../../service/errors.js';
import { CLIENT_CLOSED_REQUEST, logOf, logShadowDenial } from '../../service/request-context.js';
import { hasDisconnected } from '../intake/connection-state.js';
import { parseCheck, parsePeek, preferredWaitSeconds, type Query } from '../intake/parameters.js';
import { sendErrorBody } from '../replies/error-body.js';
import { JSON_TYPE, send, sendJson } from '../replies/reply.js';
import type { HttpParts } from './http-parts.js';

/** Answers one check, or a peek at what it would get. It throws a ServiceError if the check is invalid. */
export type CheckRate = ReturnType<typeof checkRate>;

/** `POST` and `GET /rate/{key}` */
export function checkRate(parts: HttpParts) {
  const { decide, peek } = parts.service;
  const headersOf = decisionHeadersIn(parts.settings);
  const answer = decisionAnswers(parts, headersOf);
  /** @param next gets the error of a check without a decision */
  return (key: string, query: Query, response: Response, next: NextFunction): void => {
    const peeking = parsePeek(key, query);
    if (peeking) {
      peek(peeking)
        .then((peeked) => {
          rejectTooManyHits(peeked);
          answerPeek(response, key, peeked, headersOf(peeked));
        })
        .catch(next);
      return;
    }
    const check = parseCheck(key, query);
    const seconds = mayPrefer(check) ? preferredWaitSeconds(response.req.get('prefer')) : undefined;
    const asked = seconds === undefined ? check : preferring(check, seconds * 1000);
    const preference = seconds === undefined ? undefined : `wait=${seconds}`;
    const onDecided = (decided: Decided): void => {
      try {
        rejectTooManyHits(decided);
        answer(response, asked.key, decided, preference);
      } catch (error) {
        next(error);
      }
    };
    decide(asked, response.locals.context, onDecided, next);
  };
}

/** Without a kept place, the parameter overrides the preference. */
function mayPrefer({ canWait, maxWaitMillis, keepMillis }: AskedCheck): boolean {
  return canWait && (maxWaitMillis === undefined || keepMillis !== undefined);
}

/** The end of the preferred time is the end of the wait, or only of this check if its place is kept. */
function preferring(check: AskedCheck, millis: number): AskedCheck {
  return check.keepMillis === undefined
    ? { ...check, maxWaitMillis: millis }
    : { ...check, answerMillis: millis };
}

/** The status of a check whose request waits on. */
const WAITING_STATUS = 202;

type Headers = (string | number)[];

/** Returns a function that makes the headers of a decision, or of a peek, in the form that the settings name. */
function decisionHeadersIn(settings: Settings) {
  const addRateLimitHeaders = rateLimitHeadersIn(settings.RATE_LIMIT_HEADERS);
  /** @param preference the preference that was applied */
  return ({ decision, policy, limit }: Decided | Peeked, preference?: string): Headers => {
    // Keeps approvals out of caches, which would give them out twice.
    const headers: Headers = ['Cache-Control', 'no-store'];
    if (isVerdict(decision)) {
      const { quota, outagePolicy } = decision;
      if (quota) addRateLimitHeaders(headers, quota, policy, limit);
      if (outagePolicy) headers.push(OUTAGE_POLICY_HEADER, outagePolicy);
    }
    if (preference !== undefined) headers.push('Preference-Applied', preference);
    return headers;
  };
}

/** Returns a function that answers a check with its decision. */
function decisionAnswers(
  { service: { limiter }, settings, logger }: HttpParts,
  headersOf: ReturnType<typeof decisionHeadersIn>,
) {
  const logDisconnect = (response: Response, key: string, message: string): void => {
    logOf(response.locals.context, logger).info({ key, status: CLIENT_CLOSED_REQUEST }, message);
  };

  return (
    response: Response,
    key: string,
    decided: Decided,
    preference: string | undefined,
  ): void => {
    const { decision, policy, limit, check } = decided;
    switch (decision.outcome) {
      case 'approved': {
        const { requestId, claim = requestId } = decision;
        // The caller comes back for an approval of which it may not have heard.
        if (hasDisconnected(response.req.socket) && check.keepMillis === undefined) {
          logOf(response.locals.context, logger).debug(
            { key },
            'approval given back, since the client has disconnected',
          );
          void limiter.ask('giveBack', { key, claim });
          return;
        }
        sendApproval(response, requestId, headersOf(decided, preference));
        return;
      }
      case 'denied': {
        const headers = headersOf(decided, preference);
        if (!policy.isShadow) {
          const retryMillis = millisToRetry(decision, limit, check.hits);
          sendDenial(response, key, decided, headers, retryMillis);
          return;
        }
        if (settings.LOG_4XX) {
          const log = logOf(response.locals.context, logger);
          logShadowDenial(log, key, decision.reason, limit?.name);
        }
        headers.push(SHADOW_HEADER, 'denied');
        // Nothing counts this approval, so that a release of it is a 404.
        sendApproval(response, check.requestId ?? newUuid(), headers);
        return;
      }
      case 'waiting': {
        const { requestId, place } = decision;
        if (place) {
          const waitMillis = Math.ceil(place.waitMillis);
          const body: WaitingBody = { request_id: requestId, position: place.position, waitMillis };
          sendJson(response, WAITING_STATUS, body, headersOf(decided, preference));
        } else {
          logDisconnect(response, key, 'client disconnected while waiting, and its place is kept');
        }
        return;
      }
      case 'withdrawn':
        logDisconnect(response, key, 'client disconnected while waiting');
    }
  };
}

/** Answers a peek: as the check would be answered, but with the time until its turn in place of an id. */
function answerPeek(response: Response, key: string, peeked: Peeked, headers: Headers): void {
  const { decision, policy } = peeked;
  if (decision.outcome === 'denied' && !policy.isShadow) {
    const { turnMillis } = decision;
    const waitMillis = Math.max(1, Math.ceil(turnMillis));
    sendDenial(response, key, peeked, headers, turnMillis, waitMillis);
    return;
  }
  if (decision.outcome === 'denied') headers.push(SHADOW_HEADER, 'denied');
  sendJson(response, 200, { key, waitMillis: 0 }, headers);
}

/** Answers that a check is denied, or would be. @param waitMillis of a peek */
function sendDenial(
  response: Response,
  key: string,
  { policy, limit }: Pick<Decided, 'policy' | 'limit'>,
  headers: Headers,
  retryMillis: number,
  waitMillis?: number,
): void {
  const code = 'RATE_LIMIT_EXCEEDED';
  response.locals.errorCode = code;
  if (limit) response.locals.limit = limit.name;
  headers.push('Retry-After', retryAfterSeconds(retryMillis));
  const body = { error: ERRORS[code].message, key, code, limit: limit?.name, waitMillis } as const;
  sendErrorBody(response, body, headers, [limit?.name ?? policyName(policy)]);
}

/**
 * @param requestId a UUID, which needs no escaping: building the text takes a tenth of the time of serializing an
 *   object
 */
function sendApproval(response: Response, requestId: string, headers: Headers): void {
  send(response, 200, JSON_TYPE, `{"request_id":"${requestId}"}`, headers);
}

/**
 * Rejects a check that could never be approved. Envoy's protocol has no such error: there it is a denial.
 * @throws ServiceError TOO_MANY_HITS
 */
export function rejectTooManyHits({ decision, policy, check }: Decided | Peeked): void {
  if (decision.outcome !== 'denied' || decision.reason !== 'too_many_hits' || policy.isShadow)
    return;
  const { hits = 1 } = check;
  const below = limitBelow(decision.quota, hits) ?? decision.quota.limits[0];
  const { name, maximum, algorithm } = below;
  const max = capacityOf(below);
  const limit = name === undefined ? 'the key' : `the limit ${name}`;
  const parameter = max < maximum ? kindOf(algorithm).parameter : undefined;
  const bound = parameter?.field ?? 'maximum';
  throw serviceError('TOO_MANY_HITS', { hits, max, bound, limit });
}
