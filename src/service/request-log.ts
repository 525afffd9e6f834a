import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import { callersIds } from '../tracing/trace-ids.js';
import type { RequestContext } from './request-context.js';

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
