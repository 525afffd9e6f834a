import { parseTraceparent } from './traceparent.js';

/**
 * The ids of a span as log lines have them.
 * https://opentelemetry.io/docs/specs/otel/compatibility/logging_trace_context/
 */
export interface TraceIds {
  readonly trace_id: string;
  readonly span_id: string;
  /** `01` if the span is recorded. */
  readonly trace_flags: '00' | '01';
}

/** The ids of the caller's span. @param traceparent the header of the request */
export function callersIds(traceparent: unknown): TraceIds | undefined {
  const parent = parseTraceparent(traceparent);
  return parent && traceIds(parent.traceId, parent.spanId, parent.isSampled);
}

export function traceIds(traceId: string, spanId: string, isSampled: boolean): TraceIds {
  return { trace_id: traceId, span_id: spanId, trace_flags: isSampled ? '01' : '00' };
}
