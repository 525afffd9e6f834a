import { Gauge, type Registry } from 'prom-client';

/** The metric of what `/readyz` says. */
export function readinessMetrics(registry: Registry, isReady: () => Promise<boolean>): void {
  new Gauge({
    name: 'ratelimit_ready',
    help: '1 while this replica is ready, as /readyz says.',
    registers: [registry],
    async collect() {
      this.set((await isReady()) ? 1 : 0);
    },
  });
}
