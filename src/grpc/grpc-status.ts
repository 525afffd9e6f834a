import { status } from '@grpc/grpc-js';

/**
 * The status of gRPC for an error of the table, which has those of HTTP. A fault of ours is never said to be over a limit.
 * https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto
 */
export function grpcStatusOf(httpStatus: number): status {
  switch (httpStatus) {
    case 400:
      return status.INVALID_ARGUMENT;
    case 401:
      return status.UNAUTHENTICATED;
    case 403:
      return status.PERMISSION_DENIED;
    case 503:
      return status.UNAVAILABLE;
    default:
      return status.INTERNAL;
  }
}
