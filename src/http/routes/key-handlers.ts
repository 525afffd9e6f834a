import type { RequestHandler, Response } from 'express';

import type { Operator, RequestStatus } from '../../limiter/limiter.js';
import type { AskedPause } from '../../service/deciding/change-key.js';
import type { Amend, Release } from '../../service/deciding/traced-decisions.js';
import { serviceError } from '../../service/errors.js';
import { parseKey } from '../../service/deciding/parameter-rights.js';
import type { Service } from '../../service/service.js';
import { parseAmendment, parseKeyChange, rejectParameters } from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

type HoldEnder = Operator<'endHold'>;

/** `PUT /rate/{key}`: pauses a key, or takes a report of what remains of one of its limits. */
export function changeKey({
  pause,
  reportRemaining,
}: Pick<Service, 'pause' | 'reportRemaining'>): RequestHandler<{ key: string }> {
  return async ({ params, query }, response) => {
    const key = parseKey(params.key);
    const change = parseKeyChange(query);
    if (change.pauseMillis !== undefined) {
      await answerPause(pause, key, change, response);
      return;
    }
    const { report } = change;
    const { remaining } = await reportRemaining(key, report, response.locals.context);
    sendJson(response, 200, { key, limit: report.limit, remaining });
  };
}

/** @throws ServiceError as `pause`, and what a limiter throws */
export async function answerPause(
  pause: Service['pause'],
  key: string,
  asked: AskedPause,
  response: Response,
): Promise<void> {
  const pauseMillis = await pause(key, asked, response.locals.context);
  sendJson(response, 200, { key, pauseMillis });
}

/** `DELETE /rate/{key}/holders/{handle}` */
export function endHold(limiter: HoldEnder): RequestHandler<{ key: string; handle: string }> {
  return ({ params: { key, handle }, query }, response) => {
    rejectParameters(query);
    return answerHoldEnd(limiter, key, handle, response);
  };
}

/** @throws ServiceError INVALID_KEY_LENGTH or HOLDER_NOT_FOUND, and what a limiter throws */
export async function answerHoldEnd(
  limiter: HoldEnder,
  key: string,
  handle: string,
  response: Response,
): Promise<void> {
  if (!(await limiter.ask('endHold', { key: parseKey(key), handle: handle.toLowerCase() }))) {
    throw serviceError('HOLDER_NOT_FOUND', {});
  }
  sendJson(response, 200, { key, handle });
}

const NOT_CACHED = ['Cache-Control', 'no-store'];

type OfRequest = RequestHandler<{ key: string; requestId: string }>;

/** `GET /rate/{key}/{requestId}` */
export function requestStatus(limiter: Operator<'statusOf'>): OfRequest {
  return async ({ params: { key, requestId }, query }, response) => {
    rejectParameters(query);
    const status = await limiter.ask('statusOf', {
      key: parseKey(key),
      requestId: requestId.toLowerCase(),
    });
    if (!status) throw serviceError('REQUEST_NOT_FOUND', {});
    sendJson(response, 200, bodyOf(status), NOT_CACHED);
  };
}

function bodyOf(status: RequestStatus): object {
  if (status.status === 'approved') return status;
  const { position, waitMillis } = status;
  return { status: 'waiting', position, waitMillis: Math.ceil(waitMillis) };
}

/** `PUT /rate/{key}/{requestId}` */
export function amendRequest(amend: Amend): OfRequest {
  return async ({ params, query }, response) => {
    const { key } = params;
    const requestId = params.requestId.toLowerCase();
    const amendment = parseAmendment(query);
    const amended = await amend(parseKey(key), requestId, amendment, response.locals.context);
    if (!amended) throw serviceError('REQUEST_NOT_FOUND', {});
    const { holdMillis } = amended;
    sendJson(response, 200, { request_id: requestId, hits: amendment.hits, holdMillis });
  };
}

/** `DELETE /rate/{key}/{requestId}` */
export function releaseRequest(release: Release): OfRequest {
  return ({ params: { key, requestId }, query }, response) => {
    rejectParameters(query);
    return answerRelease(release, key, requestId.toLowerCase(), response);
  };
}

/** @throws ServiceError INVALID_KEY_LENGTH or REQUEST_NOT_FOUND, and what a limiter throws */
export async function answerRelease(
  release: Release,
  key: string,
  requestId: string,
  response: Response,
): Promise<void> {
  if (!(await release(parseKey(key), requestId, response.locals.context))) {
    throw serviceError('REQUEST_NOT_FOUND', {});
  }
  sendJson(response, 200, { request_id: requestId });
}
