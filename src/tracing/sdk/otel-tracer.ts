import {
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  trace,
  TraceFlags,
  type Tracer as OtelSpans,
} from '@opentelemetry/api';

import { parseTraceparent } from '../traceparent.js';
import type { TraceIds } from '../trace-ids.js';
import type { CallSpan, ChangeName, SpanParent, TraceHeaders, Tracer } from '../tracer.js';
import { RequestSpan } from './request-spans.js';

/** A tracer with OpenTelemetry. @param readsTraceparent whether spans are below the spans of callers */
export function otelTracer(spans: OtelSpans, readsTraceparent: boolean): Tracer {
  return {
    callerOf: (headers) => new Caller(spans, readsTraceparent ? contextIn(headers) : ROOT_CONTEXT),
  };
}

class Parent implements SpanParent {
  constructor(
    protected readonly spans: OtelSpans,
    protected readonly context: Context,
    private readonly kind: SpanKind,
  ) {}

  beginCheck(startedAt: number): RequestSpan | undefined {
    return this.#recorded(this.begin('check', startedAt));
  }

  beginChange(name: ChangeName, startedAt: number): RequestSpan | undefined {
    return this.#recorded(this.begin(name, startedAt));
  }

  protected begin(name: string, startTime: number): Span {
    return this.spans.startSpan(name, { kind: this.kind, startTime }, this.context);
  }

  #recorded(span: Span): RequestSpan | undefined {
    return span.isRecording() ? new RequestSpan(span, this.context) : undefined;
  }
}

class Caller extends Parent {
  constructor(spans: OtelSpans, context: Context) {
    super(spans, context, SpanKind.SERVER);
  }

  beginCall(name: string, startedAt: number): CallSpan {
    return new Call(this.spans, this.begin(name, startedAt), this.context);
  }
}

class Call extends Parent implements CallSpan {
  readonly #span: RequestSpan;
  readonly #isRecorded: boolean;
  #elements = 0;

  constructor(spans: OtelSpans, span: Span, parent: Context) {
    const own = new RequestSpan(span, parent);
    super(spans, own.context, SpanKind.INTERNAL);
    this.#span = own;
    this.#isRecorded = span.isRecording();
  }

  get ids(): TraceIds | undefined {
    return this.#isRecorded ? this.#span.ids : undefined;
  }

  ended(): void {
    this.#span.answered(this.#elements);
  }

  failed(code: string, isFault: boolean): void {
    this.#span.failed(code, isFault);
  }

  protected override begin(name: string, startTime: number): Span {
    this.#elements += 1;
    return super.begin(name, startTime);
  }
}

function contextIn({ traceparent, tracestate }: TraceHeaders): Context {
  const parent = parseTraceparent(traceparent);
  if (!parent) return ROOT_CONTEXT;
  const { traceId, spanId, isSampled } = parent;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(typeof tracestate === 'string' ? { traceState: createTraceState(tracestate) } : {}),
  });
}
