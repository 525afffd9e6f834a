import { status } from '@grpc/grpc-js';
import type { Logger } from 'pino';

import { type ErrorCode, ERRORS } from '../service/errors.js';
import {
  CLIENT_CLOSED_REQUEST,
  levelOf,
  type LoggedStatuses,
  logOf,
} from '../service/request-context.js';
import { serviceErrorFor } from '../service/store-failures.js';
import type { GatewayCall } from './gateway-call.js';
import type { CallFailure } from './message-codec.js';

/**
 * The status of an error by the one that it has over HTTP, if that is an error of a call; `INTERNAL` for a fault of Sluice,
 * which never looks like a denial.
 * https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
 */
const BY_HTTP_STATUS: Readonly<Record<number, status>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  501: status.UNIMPLEMENTED,
  503: status.UNAVAILABLE,
};

export function grpcStatusOf(code: ErrorCode): status {
  return BY_HTTP_STATUS[ERRORS[code].status] ?? status.INTERNAL;
}

/** The log lines of calls. They have the statuses of HTTP, so that one search finds the requests of both ways in. */
export class CallLog {
  constructor(
    private readonly logger: Logger,
    private readonly settings: LoggedStatuses,
  ) {}

  /** A logger for other lines of a call. The call has its span only once it is decided. */
  of(call: GatewayCall): Logger {
    return logOf(call, this.logger);
  }

  replied(isApproved: boolean, call: GatewayCall, line: object): void {
    this.#answered(isApproved ? 200 : ERRORS.RATE_LIMIT_EXCEEDED.status, call, line);
  }

  /** @returns the error that the gateway gets */
  failed(error: unknown, call: GatewayCall): CallFailure {
    const { code: errorCode, message } = serviceErrorFor(error);
    const cause = isFault(error) ? { err: error } : { reason: message };
    this.#answered(ERRORS[errorCode].status, call, { errorCode, ...cause });
    return { code: grpcStatusOf(errorCode), details: message };
  }

  /** An error that the gateway does not get, since it gets another error, or a denial. */
  suppressed(error: unknown, call: GatewayCall): void {
    if (!isFault(error) || !this.settings.LOG_5XX) return;
    this.of(call).error({ keys: call.keys, err: error }, 'descriptor not decided');
  }

  /** @param hasWaited whether the gateway waited for a turn; such a line is logged at the level info, as over HTTP */
  givenUp(call: GatewayCall, hasWaited: boolean): void {
    const line = { keys: call.keys, status: CLIENT_CLOSED_REQUEST };
    this.of(call)[hasWaited ? 'info' : 'debug'](line, 'gateway gave up before the answer');
  }

  #answered(status: number, call: GatewayCall, line: object): void {
    const level = levelOf(status, this.settings);
    if (level === 'silent' || !this.logger.isLevelEnabled(level)) return;
    const responseTime = Math.round(performance.now() - call.startedAt);
    this.of(call)[level]({ keys: call.keys, status, ...line, responseTime }, 'call answered');
  }
}

function isFault(error: unknown): boolean {
  return serviceErrorFor(error).code === 'INTERNAL_ERROR';
}
