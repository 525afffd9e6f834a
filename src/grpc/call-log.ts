import type { Logger } from 'pino';

import type { ErrorCode } from '../service/errors.js';
import {
  CLIENT_CLOSED_REQUEST,
  levelOf,
  type LoggedStatuses,
  logOf,
  type RequestContext,
} from '../service/request-context.js';
import { serviceErrorFor } from '../service/store-failures.js';
import { type CallFailure, grpcStatusOf } from './error-statuses.js';

/** A call, as the log shows it. */
export interface LoggedCall extends RequestContext {
  /** The keys that it asks for, as far as they are known. */
  readonly keys?: readonly string[] | undefined;
}

/** The log lines of calls. */
export class CallLog {
  constructor(
    private readonly logger: Logger,
    private readonly settings: LoggedStatuses,
    /** Log lines have the statuses of HTTP, so that one search finds the requests of both ways in. */
    private readonly httpStatusOf: (code: ErrorCode) => number,
  ) {}

  /** A logger for other lines of a call. The call has its span only once it is decided. */
  of(call: LoggedCall): Logger {
    return logOf(call, this.logger);
  }

  /** A call that is answered with a reply. */
  replied(isApproved: boolean, call: LoggedCall, line: object): void {
    this.#answered(isApproved ? 200 : this.httpStatusOf('RATE_LIMIT_EXCEEDED'), call, line);
  }

  /** @returns the error that the gateway gets */
  failed(error: unknown, call: LoggedCall): CallFailure {
    const { code: errorCode, message } = serviceErrorFor(error);
    const cause = isFault(error) ? { err: error } : { reason: message };
    const httpStatus = this.httpStatusOf(errorCode);
    this.#answered(httpStatus, call, { errorCode, ...cause });
    return { code: grpcStatusOf(errorCode, httpStatus), details: message };
  }

  /** An error that the gateway does not get, since it gets another error, or a denial. */
  suppressed(error: unknown, call: LoggedCall): void {
    if (!isFault(error) || !this.settings.LOG_5XX) return;
    this.of(call).error({ keys: call.keys, err: error }, 'descriptor not decided');
  }

  /** @param hasWaited whether the gateway waited for a turn; such a line is logged at the level info, as over HTTP */
  givenUp(call: LoggedCall, hasWaited: boolean): void {
    const line = { keys: call.keys, status: CLIENT_CLOSED_REQUEST };
    this.of(call)[hasWaited ? 'info' : 'debug'](line, 'gateway gave up before the answer');
  }

  #answered(status: number, call: LoggedCall, line: object): void {
    const level = levelOf(status, this.settings);
    if (level === 'silent' || !this.logger.isLevelEnabled(level)) return;
    const responseTime = Math.round(performance.now() - call.startedAt);
    this.of(call)[level]({ keys: call.keys, status, ...line, responseTime }, 'call answered');
  }
}

function isFault(error: unknown): boolean {
  return serviceErrorFor(error).code === 'INTERNAL_ERROR';
}
