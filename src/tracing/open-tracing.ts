import type { Logger } from 'pino';

import type { Clock } from '../common/clock.js';
import type { StoreObserver } from '../redis/store-observer.js';
import { askedTracing, type Environment } from './trace-settings.js';
import type { Tracer } from './tracer.js';

/** Traces of this replica, sent to a collector. */
export interface Tracing {
  readonly tracer: Tracer;
  /** @returns an observer that makes spans of calls, and tells `observer` of them */
  observerBefore(observer: StoreObserver): StoreObserver;
  /** Sends the last spans, and gives up where the collector does not take them soon. */
  close(): Promise<void>;
}

/** What a replica says of itself in each span. */
export interface TracingParts {
  readonly environment: Environment;
  readonly replicaId: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Traces where the variables of OpenTelemetry ask for it. Its packages are loaded then, and only then.
 * @returns undefined where requests are not traced
 */
export async function openTracing(parts: TracingParts): Promise<Tracing | undefined> {
  const { environment, logger } = parts;
  const asked = askedTracing(environment);
  if (!asked) return undefined;
  for (const { variable, takes } of asked.ignored) {
    logger.warn({ variable, takes }, 'wrong value of a variable of OpenTelemetry');
  }
  if (asked.unknown.length > 0) {
    logger.warn({ variables: asked.unknown }, 'variables of OpenTelemetry without effect here');
  }
  if (!asked.isOn) {
    logger.warn('requests are not traced, since it is not clear where to send the spans');
    return undefined;
  }
  const { startSdk } = await import('./sdk/start-sdk.js');
  return startSdk(asked.settings, parts);
}
