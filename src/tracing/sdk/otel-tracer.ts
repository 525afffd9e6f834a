import {
  type Attributes,
  type Context,
  createTraceState,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer as OtelSpans,
} from '@opentelemetry/api';

import { type Decision, isVerdict, type RequestTrace } from '../../limiter/limiter.js';
import type { StoreObserver } from '../../redis/shared/store-observer.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { callersIds, type TraceHeaders, type TraceIds, traceIds } from '../trace-context.js';

/** What changes an approval. */
export type ChangeName = 'release' | 'amend';

/**
 * The recorded span of a request, or of an element of a bulk request. It ends with the first call of a method that reports
 * the end of its request. No attribute has a limiter key, which may be personal.
 */
export class RequestSpan implements RequestTrace {
  /** For spans below this one. */
  readonly context: Context;
  #queuedAt: number | undefined;

  constructor(
    private readonly span: Span,
    parent: Context,
  ) {
    this.context = trace.setSpan(parent, span);
  }

  get spanContext(): SpanContext {
    return this.span.spanContext();
  }

  get ids(): TraceIds {
    const { traceId, spanId, traceFlags } = this.spanContext;
    return traceIds(traceId, spanId, traceFlags);
  }

  queued(): void {
    if (!this.span.isRecording()) return;
    const now = performance.now();
    this.#queuedAt ??= now;
    this.span.addEvent('queued', now);
  }

  /** A call to the store has carried this request. @param other the call's span, if it is not below this one */
  carried(size: number, other: SpanContext | undefined): void {
    // If the client has disconnected, the span has ended.
    if (!this.span.isRecording()) return;
    this.span.setAttribute('sluice.batch_size', size);
    if (other) this.span.addLink({ context: other });
  }

  /** @param limit the name of the limit that denied, if the key has several */
  decided(
    decision: Decision,
    policy: Pick<KeyPolicy, 'isShadow' | 'ruleName'>,
    limit?: string,
  ): void {
    const attributes = attributesOf(decision, policy.isShadow);
    if (policy.ruleName !== undefined) attributes['sluice.rule'] = policy.ruleName;
    if (limit !== undefined) attributes['sluice.limit'] = limit;
    this.#end(attributes);
  }

  ended(outcome: 'released' | 'amended' | 'not_found'): void {
    this.#end({ 'sluice.outcome': outcome });
  }

  /** A bulk request has no result of its own, only those of its elements. */
  answered(elements: number): void {
    this.#end({ 'sluice.elements': elements });
  }

  /** @param code of the error table @param isFault whether the status is a 5xx */
  failed(code: string, isFault: boolean): void {
    if (isFault && this.span.isRecording()) this.span.setStatus({ code: SpanStatusCode.ERROR });
    this.#end({
      'sluice.outcome': isFault ? 'failed' : 'rejected',
      'sluice.reason': code.toLowerCase(),
      ...(isFault ? { 'error.type': code } : {}),
    });
  }

  #end(attributes: Attributes): void {
    if (!this.span.isRecording()) return;
    const now = performance.now();
    if (this.#queuedAt !== undefined) attributes['sluice.waited_millis'] = now - this.#queuedAt;
    this.span.setAttributes(attributes);
    this.span.end(now);
  }
}

/** The same words as in `ratelimit_decisions_total`. */
function attributesOf(decision: Decision, isShadow: boolean): Attributes {
  if (!isVerdict(decision)) {
    const isTold = decision.outcome === 'waiting' && decision.place !== undefined;
    return {
      'sluice.outcome': decision.outcome,
      'sluice.reason': isTold ? 'answer_due' : 'client_disconnected',
    };
  }
  const isDenied = decision.outcome === 'denied';
  const granted = !isDenied && decision.waited ? 'waited' : 'capacity';
  return {
    'sluice.outcome': isDenied && isShadow ? 'shadowed' : decision.outcome,
    'sluice.reason': isDenied ? decision.reason : granted,
    'sluice.decided_by': decision.outagePolicy ?? 'store',
  };
}

/** Creates spans for requests. There is no tracer unless the `OTEL_*` variables ask for one. */
export class Tracer {
  /** @param readsTraceparent whether spans are below the spans of callers */
  constructor(
    private readonly spans: OtelSpans,
    private readonly readsTraceparent: boolean,
  ) {}

  /** The caller's span, as the headers of its request name it. */
  callerOf(headers: TraceHeaders): SpanParent {
    const context = this.readsTraceparent ? contextIn(headers) : ROOT_CONTEXT;
    return new SpanParent(this.spans, context, SpanKind.SERVER);
  }
}

/** Begins spans below another; none for what is not recorded. Times are those of `performance.now()`. */
export class SpanParent {
  constructor(
    private readonly spans: OtelSpans,
    private readonly context: Context,
    private readonly kind: SpanKind,
  ) {}

  beginCheck(startedAt: number): RequestSpan | undefined {
    return this.#recorded(this.begin('check', startedAt));
  }

  beginChange(name: ChangeName, startedAt: number): RequestSpan | undefined {
    return this.#recorded(this.begin(name, startedAt));
  }

  beginCall(name: string, startedAt: number): CallSpan {
    return new CallSpan(this.spans, this.begin(name, startedAt), this.context);
  }

  protected begin(name: string, startTime: number): Span {
    return this.spans.startSpan(name, { kind: this.kind, startTime }, this.context);
  }

  #recorded(span: Span): RequestSpan | undefined {
    return span.isRecording() ? new RequestSpan(span, this.context) : undefined;
  }
}

/** The span of a bulk request, with the spans of its elements below it. */
export class CallSpan extends SpanParent {
  readonly #span: RequestSpan;
  readonly #isRecorded: boolean;
  #elements = 0;

  constructor(spans: OtelSpans, span: Span, parent: Context) {
    const own = new RequestSpan(span, parent);
    super(spans, own.context, SpanKind.INTERNAL);
    this.#span = own;
    this.#isRecorded = span.isRecording();
  }

  /** Undefined if it is not recorded. Then its elements are not recorded either. */
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
  const ids = callersIds(traceparent);
  if (!ids) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId: ids.trace_id,
    spanId: ids.span_id,
    traceFlags: Number(ids.trace_flags),
    isRemote: true,
    ...(typeof tracestate === 'string' ? { traceState: createTraceState(tracestate) } : {}),
  });
}

/** The scripts that carry requests. Their callers and the sampler decide whether these are traced. */
const CARRIERS: ReadonlySet<string> = new Set(['check', 'release', 'amend']);

/**
 * Creates a span for each script call that has ended, and passes all events on to `observer`.
 *
 * The span of a call with checks links to all recorded spans of these checks. It is below the first one, so that it is
 * recorded if that one is, and the others link to it. Calls that the replica makes on its own have their own traces.
 */
export function observeCalls(observer: StoreObserver, spans: OtelSpans): StoreObserver {
  return {
    ...observer,
    called: (script, seconds, outcome, load) => {
      observer.called(script, seconds, outcome, load);
      const { operation = '' } = load;
      const carried = (load.traces ?? []).filter((request) => request instanceof RequestSpan);
      if (carried.length === 0 && CARRIERS.has(script)) return;
      const endedAt = performance.now();
      const [first] = carried;
      const span = spans.startSpan(
        `${operation} ${script}`,
        {
          kind: SpanKind.CLIENT,
          startTime: endedAt - seconds * 1000,
          links: carried.map(({ spanContext }) => ({ context: spanContext })),
        },
        first?.context ?? ROOT_CONTEXT,
      );
      for (const request of carried) {
        request.carried(load.size, request === first ? undefined : span.spanContext());
      }
      if (!span.isRecording()) return;
      span.setAttributes({
        'db.system.name': 'redis',
        'db.operation.name': operation,
        'db.stored_procedure.name': script,
        'sluice.batch_size': load.size,
      });
      if (outcome !== 'ok') {
        span.setAttribute('error.type', outcome);
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end(endedAt);
    },
  };
}
