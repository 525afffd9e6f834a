import type { RequestHandler, Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../config.js';
import type { CheckRequest, Limiter } from '../limiter/limiter.js';
import { untilClientLeaves } from './departure.js';
import { HttpError } from './http-error.js';
import { parseCheck, parseKey } from './parameters.js';
import { retryAfter, sendJson } from './reply.js';

/** The status under which a waiting client's disconnect is logged; never sent. */
const CLIENT_CLOSED_REQUEST = 499;

type Permissions = Pick<Settings, 'REQUESTS_CAN_SET_RATE' | 'REQUESTS_CAN_MOD_QUEUE'>;

/** A cache that kept an approval would give it out twice. */
const NOT_CACHED = ['Cache-Control', 'no-store'];

/** `POST` and `GET /rate/{key}` */
export function checkRate(
  limiter: Limiter,
  permissions: Permissions,
  logger: Logger,
): RequestHandler<{ key: string }> {
  return async (request, response) => {
    const { socket } = request;
    const check = parseCheck(request.params.key, request.query);
    refuseForbiddenOverrides(check, permissions);
    const decision = check.canWait
      ? await untilClientLeaves(socket, (client) => limiter.check(check, client))
      : await limiter.check(check);
    switch (decision.outcome) {
      case 'approved':
        if (socket.destroyed) {
          await giveBack(limiter, check.key, decision.requestId, logOf(response, logger));
        } else sendJson(response, 200, { request_id: decision.requestId }, NOT_CACHED);
        return;
      case 'denied':
        sendJson(response, 429, { error: 'rate limit exceeded', key: check.key }, [
          ...NOT_CACHED,
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

function logOf(response: Response, logger: Logger): Logger {
  return logger.child({ correlationId: response.locals.correlationId });
}

/** `DELETE /rate/{key}/{requestId}` */
export function releaseRequest(
  limiter: Limiter,
): RequestHandler<{ key: string; requestId: string }> {
  return async (request, response) => {
    const { requestId } = request.params;
    const key = parseKey(request.params.key);
    if (!(await limiter.release(key, requestId))) {
      throw new HttpError(404, 'request not found', key);
    }
    sendJson(response, 200, { request_id: requestId });
  };
}

function refuseForbiddenOverrides(check: CheckRequest, permissions: Permissions): void {
  if (check.maxRequests !== undefined && !permissions.REQUESTS_CAN_SET_RATE) {
    throw new HttpError(403, 'maxRequests may not be set by requests here', check.key);
  }
  if (check.maxRequestsInQueue !== undefined && !permissions.REQUESTS_CAN_MOD_QUEUE) {
    throw new HttpError(403, 'maxRequestsInQueue may not be set by requests here', check.key);
  }
}

/** The client left while its check was decided. Nobody will use the approval, so others may. */
async function giveBack(
  limiter: Limiter,
  key: string,
  requestId: string,
  log: Logger,
): Promise<void> {
  log.debug({ key, requestId }, 'client left before its approval; given back');
  try {
    await limiter.release(key, requestId);
  } catch (error) {
    log.warn({ err: error, key, requestId }, 'approval of a client that left not given back');
  }
}
