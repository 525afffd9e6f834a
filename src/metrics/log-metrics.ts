import { Counter, type Registry } from 'prom-client';

export interface LogState {
  /** How many lines were dropped since the start. */
  readonly dropped: number;
}

/** The metric of the log's output. */
export function logMetrics(registry: Registry, log: LogState): void {
  new Counter({
    name: 'ratelimit_dropped_log_lines_total',
    help: 'Log lines that could not be written.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(log.dropped);
    },
  });
}
