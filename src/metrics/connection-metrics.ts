import { Counter, type Registry } from 'prom-client';

import { DROP_REASONS, type Metrics, STREAM_DROP_REASONS } from './metrics.js';
import { reasonCounter } from './reason-counter.js';

/** Metrics of requests, connections and streams beyond the limits of their port. */
export function connectionMetrics(
  registry: Registry,
): Pick<Metrics, 'requestDeferred' | 'connectionDropped' | 'streamDropped'> {
  const deferred = new Counter({
    name: 'ratelimit_held_requests_total',
    help: 'Requests deferred until earlier requests of their connection were answered.',
    registers: [registry],
  });
  const connections = reasonCounter(
    registry,
    'ratelimit_dropped_connections_total',
    'Connections dropped because a limit of their port was reached, by reason.',
    DROP_REASONS,
  );
  const streams = reasonCounter(
    registry,
    'ratelimit_dropped_streams_total',
    'gRPC streams dropped because a limit of their port was reached, by reason.',
    STREAM_DROP_REASONS,
  );
  return {
    requestDeferred: () => {
      deferred.inc();
    },
    connectionDropped: connections.count,
    streamDropped: streams.count,
  };
}
