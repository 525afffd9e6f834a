import type { Logger } from 'pino';

import type { Clock } from '../common/clock.js';
import type { StoreObserver } from '../redis/shared/store-observer.js';
import type { Environment } from './trace-settings.js';
import type { Tracer } from './tracer.js';

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
