import type { Response } from 'express';

import { serviceError } from '../../service/errors.js';
import { parseKey } from '../../service/deciding/parameter-rights.js';
import type { Service } from '../../service/service.js';
import {
  parseAmendment,
  parseKeyChange,
  type Query,
  rejectParameters,
} from '../intake/parameters.js';
import { sendJson } from '../replies/reply.js';

/** Answers a request about one key. @param names those in its path; a request of the dashboard has them in its query */
export type KeyAnswer<Name extends string = never> = (
  names: Readonly<Record<'key' | Name, string>>,
  query: Query,
  response: Response,
) => Promise<void>;

export type KeyAnswers = ReturnType<typeof keyAnswers>;

/** The answers to requests about one key that are no checks. They throw ServiceErrors, and what a limiter throws. */
export function keyAnswers({ limiter, pause, release, amend, reportRemaining }: Service) {
  /** `PUT /rate/{key}`: pauses a key, or takes a report of what remains of one of its limits. */
  const changeKey: KeyAnswer = async (names, query, response) => {
    const key = parseKey(names.key);
    const change = parseKeyChange(query);
    const { context } = response.locals;
    if ('pause' in change) {
      sendJson(response, 200, { key, pauseMillis: await pause(key, change.pause, context) });
      return;
    }
    const { report } = change;
    const { remaining } = await reportRemaining(key, report, context);
    sendJson(response, 200, { key, limit: report.limit, remaining });
  };

  /** `DELETE /rate/{key}/holders/{handle}` */
  const endHold: KeyAnswer<'handle'> = async ({ key, handle }, query, response) => {
    rejectParameters(query);
    if (!(await limiter.ask('endHold', { key: parseKey(key), handle: handle.toLowerCase() }))) {
      throw serviceError('HOLDER_NOT_FOUND', {});
    }
    sendJson(response, 200, { key, handle });
  };

  /** `GET /rate/{key}/{requestId}` */
  const showStatus: KeyAnswer<'requestId'> = async (names, query, response) => {
    rejectParameters(query);
    const requestId = names.requestId.toLowerCase();
    const status = await limiter.ask('statusOf', { key: parseKey(names.key), requestId });
    if (!status) throw serviceError('REQUEST_NOT_FOUND', {});
    const body =
      status.status === 'approved'
        ? status
        : {
            status: 'waiting',
            position: status.position,
            waitMillis: Math.ceil(status.waitMillis),
            stoppedBy: status.stoppedBy,
          };
    sendJson(response, 200, body, ['Cache-Control', 'no-store']);
  };

  /** `PUT /rate/{key}/{requestId}` */
  const amendOne: KeyAnswer<'requestId'> = async (names, query, response) => {
    const requestId = names.requestId.toLowerCase();
    const amendment = parseAmendment(query);
    const { context } = response.locals;
    const amended = await amend(parseKey(names.key), requestId, amendment, context);
    if (!amended) throw serviceError('REQUEST_NOT_FOUND', {});
    const { holdMillis } = amended;
    sendJson(response, 200, { request_id: requestId, hits: amendment.hits, holdMillis });
  };

  /** `DELETE /rate/{key}/{requestId}` */
  const releaseOne: KeyAnswer<'requestId'> = async (names, query, response) => {
    rejectParameters(query);
    const requestId = names.requestId.toLowerCase();
    if (!(await release(parseKey(names.key), requestId, response.locals.context))) {
      throw serviceError('REQUEST_NOT_FOUND', {});
    }
    sendJson(response, 200, { request_id: requestId });
  };

  return { changeKey, endHold, showStatus, amendOne, releaseOne };
}
