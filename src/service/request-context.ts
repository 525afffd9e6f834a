import { newUuid } from '../common/uuid.js';

import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import type { CallerPresence } from '../limiter/request.js';
import type { CallSpan } from '../tracing/sdk/otel-tracer.js';
import { callersIds, type TraceHeaders, type TraceIds } from '../tracing/trace-context.js';

export const SCOPES = ['check', 'release', 'debug', 'configure'] as const;

/** A permission that a token can give. */
export type Scope = (typeof SCOPES)[number];

/** The owner of a known token. */
export interface Caller {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** The part of the waiting places that it may take, if the file says so. */
  readonly waitingShare: number | undefined;
  readonly mayUse: (key: string) => boolean;
  /** Whether no pattern restricts its keys. */
  readonly mayUseAll: boolean;
}

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
export interface ConnectedRequest extends RequestContext {
  /** The name of its caller; without tokens its address over HTTP, and its connection over gRPC. */
  readonly owner: string;
  /** Runs `work` with a presence that ends when the client disconnects. */
  whilePresent<T>(work: (client: CallerPresence) => Promise<T>): Promise<T>;
}

/** Up to 128 characters, none of them a control character. */
const ACCEPTABLE_ID = /^[^\p{Cc}]{1,128}$/u;

/** The client's correlation id, or a new one if the client sent none that a log line can carry. */
export function correlationIdOf({ 'x-correlation-id': given }: RequestHeaders): string {
  return typeof given === 'string' && ACCEPTABLE_ID.test(given) ? given : newUuid();
}

export type LoggedStatuses = Pick<Settings, 'LOG_2XX' | 'LOG_4XX' | 'LOG_5XX'>;
type Level = 'debug' | 'info' | 'error' | 'silent';

/** The status in the log if a waiting client disconnects. No client ever sees it. */
export const CLIENT_CLOSED_REQUEST = 499;

/** What every log line of a request has: its caller, the ids to find it by, and those of its trace and span. */
export function logSubject({ correlationId, caller, span, headers }: RequestContext): object {
  return { correlationId, caller: caller?.name, ...(span?.ids ?? callersIds(headers.traceparent)) };
}

/** @returns a logger whose lines name the request */
export function logOf(context: RequestContext, logger: Logger): Logger {
  return logger.child(logSubject(context));
}

/** The level at which answers with this status are logged. Log lines have the statuses of HTTP for both ways in. */
export function levelOf(status: number, statuses: LoggedStatuses): Level {
  if (status < 400) return statuses.LOG_2XX ? 'info' : 'silent';
  if (status < 500) return statuses.LOG_4XX ? 'info' : 'silent';
  if (!statuses.LOG_5XX) return 'silent';
  // An outage makes every answer a 503. The store's own log says when it begins and ends.
  return status === 503 ? 'debug' : 'error';
}

/**
 * Logs a denial that a shadow rule has let pass. Callers do so if they log denials.
 * @param limit the name of the limit that would have denied, if the key has several
 */
export function logShadowDenial(log: Logger, key: string, reason: string, limit?: string): void {
  log.info({ key, reason, limit }, 'shadow rule would have denied this');
}
