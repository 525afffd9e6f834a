import { randomUUID } from 'node:crypto';

import type { RequestHandler, Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';
import type { KeyPolicy } from '../../rules/policy.js';
import type { Rules } from '../../rules/rules.js';
import { UnavailableError } from '../../limiter/errors.js';
import type { CheckRequest, Decision, Limiter } from '../../limiter/limiter.js';
import type { Metrics } from '../../metrics/metrics.js';
import type { Access } from '../auth/access.js';
import { parseCheck } from '../intake/parameters.js';
import { ERRORS } from '../replies/errors.js';
import { retryAfter } from '../replies/headers.js';
import { HttpError, httpError } from '../replies/http-error.js';
import { rateLimitHeadersIn } from '../replies/rate-limit-headers.js';
import { sendJson } from '../replies/reply.js';
import { untilDisconnect } from './disconnect.js';

const DENIAL = ERRORS.RATE_LIMIT_EXCEEDED;
/** The status in the log when a waiting client disconnects. No client ever sees it. */
const CLIENT_CLOSED_REQUEST = 499;

/** The header that says what decided in the place of a store that could not be asked. */
const OUTAGE_POLICY_HEADER = 'X-Sluice-Outage-Policy';

/** The header of an approval that a rule would have denied, were it not in the shadow. */
const SHADOW_HEADER = 'X-Sluice-Shadow';

interface CheckParts {
  readonly limiter: Limiter;
  readonly rules: Pick<Rules, 'current'>;
  readonly metrics: Metrics;
  readonly access: Pick<Access, 'demand' | 'withPlace'>;
  readonly settings: Pick<Settings, 'UNKNOWN_KEYS' | 'LOG_4XX' | 'RATE_LIMIT_HEADERS'>;
  readonly logger: Logger;
}

/** `POST` and `GET /rate/{key}` */
export function checkRate(parts: CheckParts): RequestHandler<{ key: string }> {
  const { limiter, rules, metrics, access, settings, logger } = parts;
  const refusesUnknownKeys = settings.UNKNOWN_KEYS === 'refuse';
  const addRateLimitHeaders = rateLimitHeadersIn(settings.RATE_LIMIT_HEADERS);
  const headersFor = (
    decision: Extract<Decision, { readonly outcome: 'approved' | 'denied' }>,
    policy: KeyPolicy,
  ): (string | number)[] => {
    // Keeps approvals out of caches: one that came from a cache would be given out twice.
    const headers: (string | number)[] = ['Cache-Control', 'no-store'];
    if (decision.quota) addRateLimitHeaders(headers, decision.quota, policy);
    if (decision.policy) headers.push(OUTAGE_POLICY_HEADER, decision.policy);
    return headers;
  };
  return async (request, response) => {
    const { socket } = request;
    const check = parseCheck(request.params.key, request.query);
    if (isOverride(check)) access.demand('configure', response);
    const policy = rules.current.policyOf(check.key);
    if (refusesUnknownKeys && !policy.isKnown) throw httpError('KEY_UNKNOWN', {});
    refuseForbiddenOverrides(check, policy);
    let decision: Decision;
    try {
      // Nobody waits for a limit that lets everybody pass.
      const asked = policy.isShadow ? { ...check, canWait: false } : check;
      decision = await ask(parts, asked, response);
    } catch (error) {
      const reason = reasonOf(error);
      if (reason) metrics.failed(reason);
      throw error;
    }
    metrics.decided(decision, (performance.now() - response.locals.startedAt) / 1000, policy);
    switch (decision.outcome) {
      case 'approved':
        if (socket.destroyed) {
          await releaseUnused(limiter, check.key, decision.requestId, logOf(response, logger));
        } else {
          const headers = headersFor(decision, policy);
          sendJson(response, 200, { request_id: decision.requestId }, headers);
        }
        return;
      case 'denied': {
        const headers = headersFor(decision, policy);
        if (policy.isShadow) {
          if (settings.LOG_4XX) logShadow(logOf(response, logger), check.key, decision.reason);
          // The approval counts nowhere: a release of it is a 404.
          headers.push(SHADOW_HEADER, 'denied');
          sendJson(response, 200, { request_id: randomUUID() }, headers);
          return;
        }
        response.locals.errorCode = 'RATE_LIMIT_EXCEEDED';
        headers.push(...retryAfter(decision.quota.resetMillis));
        sendJson(response, DENIAL.status, { error: DENIAL.message, key: check.key }, headers);
        return;
      }
      case 'withdrawn':
        logOf(response, logger).info(
          { key: check.key, status: CLIENT_CLOSED_REQUEST },
          'client disconnected while waiting',
        );
    }
  };
}

function ask(
  { limiter, access }: CheckParts,
  check: CheckRequest,
  response: Response,
): Promise<Decision> {
  if (!check.canWait) return limiter.check(check);
  return access.withPlace(response, (noPlace) => {
    const asked = noPlace ? { ...check, noPlace } : check;
    return untilDisconnect(response.req.socket, (client) => limiter.check(asked, client));
  });
}

function isOverride({ maxRequests, maxRequestsInQueue }: CheckRequest): boolean {
  return maxRequests !== undefined || maxRequestsInQueue !== undefined;
}

/** Why a check could not be decided; undefined where that is a fault. */
function reasonOf(error: unknown): Parameters<Metrics['failed']>[0] | undefined {
  if (error instanceof UnavailableError) return error.reason;
  const isOverShare = error instanceof HttpError && error.code === 'TOO_MANY_WAITERS_OF_CALLER';
  return isOverShare ? 'too_many_waiters_of_caller' : undefined;
}

function logOf(response: Response, logger: Logger): Logger {
  const { correlationId, caller } = response.locals;
  return logger.child({ correlationId, caller });
}

function refuseForbiddenOverrides(check: CheckRequest, policy: KeyPolicy): void {
  const { maxRequests, maxRequestsInQueue } = check;
  if (maxRequests !== undefined) {
    const max = policy.maxRequestsCeiling;
    refuse('maxRequests', policy.requestsCanSetRate, maxRequests, max);
  }
  if (maxRequestsInQueue !== undefined) {
    const max = policy.maxRequestsInQueueCeiling;
    refuse('maxRequestsInQueue', policy.requestsCanModQueue, maxRequestsInQueue, max);
  }
}

function refuse(parameter: string, isAllowed: boolean, value: number, max: number): void {
  if (!isAllowed) throw httpError('OVERRIDE_FORBIDDEN', { parameter });
  if (value > max) throw httpError('OVERRIDE_TOO_LARGE', { parameter, max });
}

/** Where refusals are logged, those that a limit in the shadow would have made are, too. */
function logShadow(log: Logger, key: string, reason: string): void {
  log.info({ key, reason }, 'would be denied; passes, since the rule is in the shadow');
}

/** Releases the approval of a client that disconnected while its check was decided. */
async function releaseUnused(
  limiter: Limiter,
  key: string,
  requestId: string,
  log: Logger,
): Promise<void> {
  log.debug({ key, requestId }, 'client disconnected before its approval; released');
  try {
    await limiter.release(key, requestId);
  } catch (error) {
    log.warn({ err: error, key, requestId }, 'approval of a client that disconnected not released');
  }
}
