import type { Logger } from 'pino';

import type { Clock } from '../common/clock.js';
import type { Decision, RequestTrace } from '../limiter/limiter.js';
import type { StoreObserver } from '../redis/shared/store-observer.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { TraceIds } from './trace-context.js';
import type { Environment } from './trace-settings.js';

/** A recorded span. It ends with the first call of a method that reports the end of its request. */
interface RequestSpan extends RequestTrace {
  readonly ids: TraceIds;
  /** @param code of the error table @param isFault whether the status is a 5xx */
  failed(code: string, isFault: boolean): void;
}

export interface CheckSpan extends RequestSpan {
  /** @param limit the name of the limit that denied, if the key has several */
  decided(
    decision: Decision,
    policy: Pick<KeyPolicy, 'isShadow' | 'ruleName'>,
    limit?: string,
  ): void;
}

/** What changes an approval. */
export type ChangeName = 'release' | 'amend';

export type ChangeOutcome = 'released' | 'amended' | 'not_found';

export interface ChangeSpan extends RequestSpan {
  ended(outcome: ChangeOutcome): void;
}

/** Begins spans below another; none for what is not recorded. Times are those of `performance.now()`. */
export interface SpanParent {
  beginCheck(startedAt: number): CheckSpan | undefined;
  beginChange(name: ChangeName, startedAt: number): ChangeSpan | undefined;
}

/** The span of a bulk request, with the spans of its elements below it. */
export interface CallSpan extends SpanParent {
  /** Undefined if it is not recorded. Then its elements are not recorded either. */
  readonly ids: TraceIds | undefined;
  ended(): void;
  failed(code: string, isFault: boolean): void;
}

/** The headers of a request that name its trace, and the caller's span. */
export interface TraceHeaders {
  readonly traceparent?: unknown;
  readonly tracestate?: unknown;
}

/** Creates spans for requests. There is no tracer unless the `OTEL_*` variables ask for one. */
export interface Tracer {
  /** The caller's span, as the headers of its request name it. */
  callerOf(headers: TraceHeaders): SpanParent & {
    beginCall(name: 'check many' | 'release many', startedAt: number): CallSpan;
  };
}

/** Traces of this replica, sent to a collector. */
export interface Tracing {
  readonly tracer: Tracer;
  /** @returns an observer that creates spans for calls, and passes them on to `observer` */
  observerBefore(observer: StoreObserver): StoreObserver;
  /** Sends the last spans. Gives up if the collector does not accept them soon. */
  close(): Promise<void>;
}

/** What tracing needs of a replica. */
export interface TracingParts {
  readonly environment: Environment;
  readonly replicaId: string;
  readonly clock: Clock;
  readonly logger: Logger;
}
