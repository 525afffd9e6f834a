import { status } from '@grpc/grpc-js';

import type { ErrorCode } from '../service/errors.js';

/** Why a call fails, as its client is told. */
export interface CallFailure {
  readonly code: status;
  readonly details: string;
}

/**
 * The status of an error by the one that it has over HTTP. A fault of Sluice never looks like a denial.
 * https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
 */
const BY_HTTP_STATUS: Readonly<Record<number, status>> = {
  400: status.INVALID_ARGUMENT,
  401: status.UNAUTHENTICATED,
  403: status.PERMISSION_DENIED,
  404: status.NOT_FOUND,
  405: status.UNIMPLEMENTED,
  408: status.DEADLINE_EXCEEDED,
  409: status.ALREADY_EXISTS,
  413: status.RESOURCE_EXHAUSTED,
  414: status.INVALID_ARGUMENT,
  415: status.INVALID_ARGUMENT,
  429: status.RESOURCE_EXHAUSTED,
  431: status.RESOURCE_EXHAUSTED,
  500: status.INTERNAL,
  501: status.UNIMPLEMENTED,
  503: status.UNAVAILABLE,
};

export function grpcStatusOf(code: ErrorCode, httpStatus: number): status {
  if (code === 'PLACE_TAKEN_OVER' || code === 'PLACE_WITHDRAWN') return status.ABORTED;
  return BY_HTTP_STATUS[httpStatus] ?? status.INTERNAL;
}
