import type { Logger } from 'pino';

import type { Clock } from '../common/clock.js';
import type { StoreObserver } from '../redis/store-observer.js';
import type { Environment } from './trace-settings.js';
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
