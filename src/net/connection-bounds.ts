import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import type { DropReason, Metrics } from '../metrics/metrics.js';
import { systemClock } from '../common/clock.js';
import { FrequentLog } from '../common/frequent-log.js';

/** What clients may take of a port. */
export interface ConnectionBounds {
  readonly maxConnections: number;
  /** How many requests of one connection may be served at a time. */
  readonly maxInFlight: number;
  /** Called for each request beyond `maxInFlight`, which is served later. */
  readonly onDeferred: () => void;
  /** Called for each connection that is dropped. */
  readonly onDropped: (reason: DropReason) => void;
}

/**
 * The bounds of each port, by the settings. Requests and connections beyond the bounds are counted. Drops are also
 * logged, those of the last second by `close`.
 */
export function connectionBounds(
  settings: Pick<Settings, 'MAX_CONNECTIONS' | 'MAX_IN_FLIGHT_PER_CONNECTION'>,
  metrics: Pick<Metrics, 'requestDeferred' | 'connectionDropped'>,
  logger: Logger,
): ConnectionBounds & { close(): void } {
  const log = new FrequentLog<DropReason>(systemClock, (dropped) => {
    logger.warn({ dropped }, 'connections dropped');
  });
  return {
    maxConnections: settings.MAX_CONNECTIONS,
    maxInFlight: settings.MAX_IN_FLIGHT_PER_CONNECTION,
    onDeferred: () => {
      metrics.requestDeferred();
    },
    onDropped: (reason) => {
      metrics.connectionDropped(reason);
      log.note(reason);
    },
    close: () => {
      log.close();
    },
  };
}
