import type { IncomingHttpHeaders } from 'node:http';

import type { Decision, RequestTrace } from '../limiter/limiter.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { TraceIds } from './trace-ids.js';

/** A span that is recorded. It ends with the first of its methods that says how its request ended. */
interface RequestSpan extends RequestTrace {
  readonly ids: TraceIds;
  /** @param code of the error table @param isFault whether the status is a 5xx */
  failed(code: string, isFault: boolean): void;
}

export interface CheckSpan extends RequestSpan {
  decided(decision: Decision, policy: Pick<KeyPolicy, 'isShadow' | 'ruleName'>): void;
}

export interface ReleaseSpan extends RequestSpan {
  ended(isReleased: boolean): void;
}

/** Begins spans below another. Times are those of `performance.now()`. */
export interface SpanParent {
  /** @returns undefined if the check is not recorded */
  beginCheck(startedAt: number): CheckSpan | undefined;
  /** @returns undefined if the release is not recorded */
  beginRelease(startedAt: number): ReleaseSpan | undefined;
}

/** The span of a call for many, which has those of its elements below it. */
export interface CallSpan extends SpanParent {
  /** Undefined if it is not recorded; its elements are not then, either. */
  readonly ids: TraceIds | undefined;
  ended(): void;
  failed(code: string, isFault: boolean): void;
}

/** Makes spans of requests. There is none unless the `OTEL_*` variables ask for it. */
export interface Tracer {
  /** The caller's span, as the headers of its request name it. */
  callerOf(headers: IncomingHttpHeaders): SpanParent & {
    beginCall(name: 'check many' | 'release many', startedAt: number): CallSpan;
  };
}
