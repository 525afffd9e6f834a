import { Gauge, type Registry } from 'prom-client';

/** A metric that is 1 while something is so, and else 0. It is asked at each scrape. */
export function flag(
  registry: Registry,
  name: string,
  help: string,
  isSo: () => boolean | Promise<boolean>,
): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      this.set((await isSo()) ? 1 : 0);
    },
  });
}
