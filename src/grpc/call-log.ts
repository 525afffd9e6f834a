import type { status } from '@grpc/grpc-js';
import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import type { Asker } from '../http/asker.js';
import { errorAnswer } from '../http/replies/errors.js';
import { httpErrorFor } from '../http/replies/http-error-for.js';
import { logSubject } from '../http/replies/log-subject.js';
import { CLIENT_CLOSED_REQUEST, levelOf } from '../http/replies/request-log.js';
import { grpcStatusOf } from './grpc-status.js';

/** A call as the log has it. */
export interface LoggedCall extends Asker {
  /** Those that it asks for, as far as they are known. */
  readonly keys?: readonly string[] | undefined;
}

/** The log lines of calls. */
export class CallLog {
  constructor(
    private readonly logger: Logger,
    private readonly settings: Pick<Settings, 'LOG_2XX' | 'LOG_4XX' | 'LOG_5XX'>,
  ) {}

  /** For other lines of a call. It has its caller and its span only once it is decided. */
  of(call: LoggedCall): Logger {
    return this.logger.child(logSubject(call));
  }

  /** @param status as by HTTP */
  answered(status: number, call: LoggedCall, line: object): void {
    const level = levelOf(status, this.settings);
    if (level === 'silent' || !this.logger.isLevelEnabled(level)) return;
    const responseTime = Math.round(performance.now() - call.locals.startedAt);
    this.of(call)[level]({ keys: call.keys, status, ...line, responseTime }, 'call answered');
  }

  /** @returns what the gateway is told of the error */
  failed(error: unknown, call: LoggedCall): { code: status; details: string } {
    const { code: errorCode, message } = httpErrorFor(error);
    const httpStatus = errorAnswer(errorCode).status;
    const cause = isFault(error) ? { err: error } : { reason: message };
    this.answered(httpStatus, call, { errorCode, ...cause });
    return { code: grpcStatusOf(httpStatus), details: message };
  }

  /** Of an error that the gateway is not told of, since it is told of another, or of a refusal. */
  untold(error: unknown, call: LoggedCall): void {
    if (!isFault(error) || !this.settings.LOG_5XX) return;
    this.of(call).error({ keys: call.keys, err: error }, 'descriptor not decided');
  }

  /** @param hasWaited as over HTTP, a client is missed that waited */
  givenUp(call: LoggedCall, hasWaited: boolean): void {
    const line = { keys: call.keys, status: CLIENT_CLOSED_REQUEST };
    this.of(call)[hasWaited ? 'info' : 'debug'](line, 'gateway gave up before the answer');
  }
}

function isFault(error: unknown): boolean {
  return httpErrorFor(error).code === 'INTERNAL_ERROR';
}
