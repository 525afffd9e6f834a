import { randomUUID } from 'node:crypto';

import type { CallerPresence } from '../limiter/caller-presence.js';
import type { TraceIds } from '../tracing/trace-ids.js';
import type { CallSpan, TraceHeaders } from '../tracing/tracer.js';
import type { Caller } from './callers/caller.js';
import type { SliceTaker } from './deciding/slices.js';

/** The headers of a request over HTTP, or the metadata of a call over gRPC, by names in lower case. */
export interface RequestHeaders extends TraceHeaders {
  readonly authorization?: string | undefined;
  readonly 'x-correlation-id'?: unknown;
}

/** What the service knows of a request until its answer is out. */
export interface RequestContext {
  /** In every log line of the request, and echoed in its answer. */
  readonly correlationId: string;
  /** By `performance.now()`. */
  readonly startedAt: number;
  readonly headers: RequestHeaders;
  /** The owner of the token that the request was sent with. */
  caller?: Caller | undefined;
  /** The span of the request, if it is traced. */
  span?: { readonly ids: TraceIds | undefined } | undefined;
  /** The span of a bulk request, which has the spans of its elements below it. */
  bulkSpan?: CallSpan | undefined;
}

/** A request whose client may disconnect while a check of it waits. */
export interface ConnectedRequest extends RequestContext, SliceTaker {
  /** The name of its caller; without tokens its address over HTTP, and its connection over gRPC. */
  readonly owner: string;
  /** Runs `work` with a presence that ends when the client disconnects. */
  whilePresent<T>(work: (client: CallerPresence) => Promise<T>): Promise<T>;
}

/** Up to 128 characters, none of them a control character. */
const ACCEPTABLE_ID = /^[^\p{Cc}]{1,128}$/u;

/** The client's correlation id, or a new one if the client sent none that a log line can carry. */
export function correlationIdOf({ 'x-correlation-id': given }: RequestHeaders): string {
  return typeof given === 'string' && ACCEPTABLE_ID.test(given) ? given : randomUUID();
}
