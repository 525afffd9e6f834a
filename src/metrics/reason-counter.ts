import { Counter, type Registry } from 'prom-client';

/**
 * Counts by reason, of which all are known. Each series starts at 0, because rate() would miss the increment that creates
 * it.
 */
export function reasonCounter<Reason extends string>(
  registry: Registry,
  name: string,
  help: string,
  reasons: readonly Reason[],
) {
  const counter = new Counter({ name, help, labelNames: ['reason'], registers: [registry] });
  for (const reason of reasons) counter.inc({ reason }, 0);
  return {
    count: (reason: Reason): void => {
      counter.inc({ reason });
    },
    values: async () => (await counter.get()).values,
  };
}
