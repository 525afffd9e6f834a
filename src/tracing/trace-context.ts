/** Version, trace, span, flags, and what later versions may add. */
const TRACEPARENT =
  /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-.*)?$/;
const KNOWN_VERSION = '00';
const KNOWN_LENGTH = 55;
const SAMPLED_FLAG = 1;

/** The headers of a request that name its trace, and the caller's span. */
export interface TraceHeaders {
  readonly traceparent?: unknown;
  readonly tracestate?: unknown;
}

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

/**
 * Parses the header `traceparent`: the ids of the caller's span. A header that was sent twice is invalid, since Node joins
 * the values.
 * https://www.w3.org/TR/trace-context/#traceparent-header
 * @returns undefined if there is none, or it is not valid
 */
export function callersIds(traceparent: unknown): TraceIds | undefined {
  if (typeof traceparent !== 'string') return undefined;
  const [, version, traceId, spanId, flags] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === KNOWN_VERSION && traceparent.length !== KNOWN_LENGTH) return undefined;
  return traceIds(traceId, spanId, Number.parseInt(flags, 16));
}

export function traceIds(traceId: string, spanId: string, flags: number): TraceIds {
  const isSampled = (flags & SAMPLED_FLAG) !== 0;
  return { trace_id: traceId, span_id: spanId, trace_flags: isSampled ? '01' : '00' };
}
