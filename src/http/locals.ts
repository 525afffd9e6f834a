import type { TraceIds } from '../tracing/trace-ids.js';
import type { CallSpan } from '../tracing/tracer.js';
import type { Caller } from './auth/tokens.js';
import type { ErrorCode } from './replies/errors.js';

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- how Express's types are extended
  namespace Express {
    /** What `response.locals` has of a request until its answer is out. */
    interface Locals {
      /** In every log line of the request, and echoed in its answer. */
      correlationId: string;
      /** By `performance.now()`. */
      startedAt: number;
      /** The error that the request is answered with. */
      errorCode?: ErrorCode;
      /** The name of the token that the request was sent with. */
      caller?: string;
      /** What that token's owner may do. */
      rights?: Caller;
      /** Of the request, where it is traced. */
      span?: { readonly ids: TraceIds | undefined };
      /** The same of a call for many, which has the spans of its elements below it. */
      call?: CallSpan;
    }
  }
}
