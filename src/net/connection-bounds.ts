import type { Logger } from 'pino';

import { systemClock } from '../common/clock.js';
import { FrequentLog } from '../common/frequent-log.js';
import type { Settings } from '../config/settings.js';
import type { DropReason, Metrics } from '../metrics/prometheus-metrics.js';

/** How long a client may take, in ms. The wait of a request for its turn has no such limit. */
export const TIMEOUTS = {
  /** To send a request's head, or to agree on TLS. */
  headMillis: 10_000,
  /** To send a request with its body. */
  requestMillis: 30_000,
  // Many load balancers keep an idle connection for 60 s. The service has to keep it longer: closing it would fail a
  // request that is just being sent.
  /** To send the next request on a connection. */
  idleMillis: 75_000,
  /** How often Node checks the first two. */
  checkMillis: 1000,
};

export type Timeouts = Readonly<typeof TIMEOUTS>;

/**
 * After this silence on a connection, TCP asks whether the host of the client is still there. Node lets it ask ten times,
 * a second apart, before the connection ends. So a host that has vanished leaves its places within a minute, and a
 * network may fail for ten seconds.
 */
export const SILENCE_MILLIS = 45_000;

/** What clients may take of a port. */
export type ConnectionBounds = Omit<ReturnType<typeof connectionBounds>, 'close'>;

/**
 * The bounds of each port, by the settings. Requests and connections beyond the bounds are counted. Drops are also
 * logged, those of the last second by `close`.
 */
export function connectionBounds(
  settings: Pick<Settings, 'MAX_CONNECTIONS' | 'MAX_IN_FLIGHT_PER_CONNECTION'>,
  metrics: Pick<Metrics, 'requestDeferred' | 'connectionDropped'>,
  logger: Logger,
) {
  const log = new FrequentLog<DropReason>(systemClock, (dropped) =>
    logger.warn({ dropped }, 'connections dropped'),
  );
  return {
    maxConnections: settings.MAX_CONNECTIONS,
    /** How many requests of one connection may be served at a time. */
    maxInFlight: settings.MAX_IN_FLIGHT_PER_CONNECTION,
    /** Called for each request beyond `maxInFlight`, which is served later. */
    onDeferred: (): void => metrics.requestDeferred(),
    onDropped: (reason: DropReason): void => {
      metrics.connectionDropped(reason);
      log.note(reason);
    },
    close: (): void => log.close(),
  };
}
