import type { RequestHandler, Response } from 'express';
import type { Logger } from 'pino';

import type { Settings } from '../config.js';
import type { CheckRequest, Limiter } from '../limiter/limiter.js';
import { correlationIdOf } from './correlation.js';
import { untilClientLeaves } from './departure.js';
import { HttpError } from './http-error.js';
import { parseCheck, parseKey } from './parameters.js';
import { endOfTurn } from './turn.js';
import { sendJson, setRetryAfter } from './reply.js';

/** The status under which a waiting client's disconnect is logged; never sent. */
const CLIENT_CLOSED_REQUEST = 499;

type Permissions = Pick<Settings, 'REQUESTS_CAN_SET_RATE' | 'REQUESTS_CAN_MOD_QUEUE'>;

/** `POST` and `GET /rate/{key}` */
export function checkRate(
  limiter: Limiter,
  permissions: Permissions,
  logger: Logger,
): RequestHandler<{ key: string }> {
  const logOf = (response: Response): Logger =>
    logger.child({ correlationId: correlationIdOf(response) });

  return async (request, response) => {
    const check = parseCheck(request.params.key, request.query);
    refuseForbiddenOverrides(check, permissions);
    // A cache that kept an approval would give it out twice.
    response.setHeader('Cache-Control', 'no-store');
    const decision = check.canWait
      ? await untilClientLeaves(request.socket, (signal) => limiter.check(check, signal))
      : await limiter.check(check);
    await endOfTurn();
    switch (decision.outcome) {
      case 'approved':
        if (request.socket.destroyed)
          await giveBack(limiter, check.key, decision.requestId, logOf(response));
        else sendJson(response, 200, { request_id: decision.requestId });
        return;
      case 'denied':
        setRetryAfter(response, decision.retryAfterMillis);
        sendJson(response, 429, { error: 'rate limit exceeded', key: check.key });
        return;
      case 'withdrawn':
        logOf(response).info(
          { key: check.key, status: CLIENT_CLOSED_REQUEST },
          'client disconnected while waiting',
        );
    }
  };
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
