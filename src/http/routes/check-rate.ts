import type { Socket } from 'node:net';

import type { RequestHandler, Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';
import { UnavailableError } from '../../limiter/errors.js';
import type { CheckRequest, Decision, Limiter, OutagePolicy } from '../../limiter/limiter.js';
import type { Metrics } from '../../metrics/metrics.js';
import { parseCheck } from '../intake/parameters.js';
import { ERRORS } from '../replies/errors.js';
import { type Headers, retryAfter } from '../replies/headers.js';
import { httpError } from '../replies/http-error.js';
import { sendJson } from '../replies/reply.js';
import { untilDisconnect } from './disconnect.js';

const DENIAL = ERRORS.RATE_LIMIT_EXCEEDED;
/** The status in the log when a waiting client disconnects. No client ever sees it. */
const CLIENT_CLOSED_REQUEST = 499;

type Permissions = Pick<Settings, 'REQUESTS_CAN_SET_RATE' | 'REQUESTS_CAN_MOD_QUEUE'>;

/** Keeps approvals out of caches: one that came from a cache would be given out twice. */
const NOT_CACHED = ['Cache-Control', 'no-store'];

/** The header that says what decided in the place of a store that could not be asked. */
const OUTAGE_POLICY_HEADER = 'X-Sluice-Outage-Policy';

interface CheckParts {
  readonly limiter: Limiter;
  readonly metrics: Metrics;
  readonly settings: Permissions;
  readonly logger: Logger;
}

/** `POST` and `GET /rate/{key}` */
export function checkRate(parts: CheckParts): RequestHandler<{ key: string }> {
  const { limiter, metrics, settings, logger } = parts;
  return async (request, response) => {
    const { socket } = request;
    const check = parseCheck(request.params.key, request.query);
    refuseForbiddenOverrides(check, settings);
    let decision: Decision;
    try {
      decision = await ask(limiter, check, socket);
    } catch (error) {
      if (error instanceof UnavailableError) metrics.failed(error.reason);
      throw error;
    }
    metrics.decided(decision, (performance.now() - response.locals.startedAt) / 1000);
    switch (decision.outcome) {
      case 'approved':
        if (socket.destroyed) {
          await releaseUnused(limiter, check.key, decision.requestId, logOf(response, logger));
        } else {
          const headers = headersFor(decision.policy);
          sendJson(response, 200, { request_id: decision.requestId }, headers);
        }
        return;
      case 'denied':
        response.locals.errorCode = 'RATE_LIMIT_EXCEEDED';
        sendJson(response, DENIAL.status, { error: DENIAL.message, key: check.key }, [
          ...headersFor(decision.policy),
          ...retryAfter(decision.retryAfterMillis),
        ]);
        return;
      case 'withdrawn':
        logOf(response, logger).info(
          { key: check.key, status: CLIENT_CLOSED_REQUEST },
          'client disconnected while waiting',
        );
    }
  };
}

function ask(limiter: Limiter, check: CheckRequest, socket: Socket): Promise<Decision> {
  if (!check.canWait) return limiter.check(check);
  return untilDisconnect(socket, (client) => limiter.check(check, client));
}

function headersFor(policy: OutagePolicy | undefined): Headers {
  return policy === undefined ? NOT_CACHED : [...NOT_CACHED, OUTAGE_POLICY_HEADER, policy];
}

function logOf(response: Response, logger: Logger): Logger {
  const { correlationId, caller } = response.locals;
  return logger.child({ correlationId, caller });
}

function refuseForbiddenOverrides(check: CheckRequest, permissions: Permissions): void {
  if (check.maxRequests !== undefined && !permissions.REQUESTS_CAN_SET_RATE) {
    throw httpError('OVERRIDE_FORBIDDEN', { parameter: 'maxRequests' });
  }
  if (check.maxRequestsInQueue !== undefined && !permissions.REQUESTS_CAN_MOD_QUEUE) {
    throw httpError('OVERRIDE_FORBIDDEN', { parameter: 'maxRequestsInQueue' });
  }
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
