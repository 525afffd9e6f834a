import {
  type Attributes,
  type Context,
  type Span,
  type SpanContext,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api';

import { type Decision, isVerdict } from '../../limiter/limiter.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { type TraceIds, traceIds } from '../trace-ids.js';
import type { ChangeOutcome, ChangeSpan, CheckSpan } from '../tracer.js';

/** The span of a request, or of an element of a bulk request. No attribute has a limiter key, which may be personal. */
export class RequestSpan implements CheckSpan, ChangeSpan {
  /** For spans below this one. */
  readonly context: Context;
  #queuedAt: number | undefined;

  constructor(
    protected readonly span: Span,
    parent: Context,
  ) {
    this.context = trace.setSpan(parent, span);
  }

  get spanContext(): SpanContext {
    return this.span.spanContext();
  }

  get ids(): TraceIds {
    const { traceId, spanId, traceFlags } = this.spanContext;
    return traceIds(traceId, spanId, (traceFlags & TraceFlags.SAMPLED) !== 0);
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

  decided(
    decision: Decision,
    policy: Pick<KeyPolicy, 'isShadow' | 'ruleName'>,
    limit?: string,
  ): void {
    const attributes = attributesOf(decision, policy.isShadow);
    if (policy.ruleName !== undefined) attributes['sluice.rule'] = policy.ruleName;
    if (limit !== undefined) attributes['sluice.limit'] = limit;
    this.end(attributes);
  }

  ended(outcome: ChangeOutcome): void {
    this.end({ 'sluice.outcome': outcome });
  }

  /** A bulk request has no result of its own, only those of its elements. */
  answered(elements: number): void {
    this.end({ 'sluice.elements': elements });
  }

  failed(code: string, isFault: boolean): void {
    if (isFault && this.span.isRecording()) this.span.setStatus({ code: SpanStatusCode.ERROR });
    this.end({
      'sluice.outcome': isFault ? 'failed' : 'rejected',
      'sluice.reason': code.toLowerCase(),
      ...(isFault ? { 'error.type': code } : {}),
    });
  }

  protected end(attributes: Attributes): void {
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
