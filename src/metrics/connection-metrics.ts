import { Counter, type Registry } from 'prom-client';

import { DROP_REASONS, type Metrics, STREAM_DROP_REASONS } from './metrics.js';

/** Metrics of requests, connections and streams beyond the limits of their port. */
export function connectionMetrics(
  registry: Registry,
): Pick<Metrics, 'requestDeferred' | 'connectionDropped' | 'streamDropped'> {
  const registers = [registry];
  const deferred = new Counter({
    name: 'ratelimit_held_requests_total',
    help: 'Requests deferred until earlier requests of their connection were answered.',
    registers,
  });
  const dropped = new Counter({
    name: 'ratelimit_dropped_connections_total',
    help: 'Connections dropped because a limit of their port was reached, by reason.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of DROP_REASONS) dropped.inc({ reason }, 0);
  const streams = new Counter({
    name: 'ratelimit_dropped_streams_total',
    help: 'gRPC streams dropped because a limit of their port was reached, by reason.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of STREAM_DROP_REASONS) streams.inc({ reason }, 0);
  return {
    requestDeferred: () => {
      deferred.inc();
    },
    connectionDropped: (reason) => {
      dropped.inc({ reason });
    },
    streamDropped: (reason) => {
      streams.inc({ reason });
    },
  };
}
