import { setTimeout as delay } from 'node:timers/promises';

import { scrape } from '../../prometheus-text.js';

/** What Redis is still to be told after an outage. */
const UNDONE = 'ratelimit_store_catch_up_pending';
const CPU_SECONDS = 'process_cpu_seconds_total';
const CPU_SPAN_MILLIS = 400;

/** How much is undone, by kind; undefined if nothing is. @throws Error if the replica does not say */
export async function undoneOf(url: string): Promise<string | undefined> {
  const gauges = Object.entries((await scrape(url)).valuesOf(UNDONE));
  if (gauges.length === 0) throw new Error(`the replica has no ${UNDONE}`);
  const undone = gauges.filter(([, value]) => value > 0);
  return undone.length === 0 ? undefined : undone.map((entry) => entry.join(' ')).join(', ');
}

/** The share of one CPU that a replica takes. */
export async function cpuShareOf(url: string): Promise<number> {
  const before = await cpuSeconds(url);
  const startedAt = performance.now();
  await delay(CPU_SPAN_MILLIS);
  const seconds = (await cpuSeconds(url)) - before;
  return seconds / ((performance.now() - startedAt) / 1000);
}

async function cpuSeconds(url: string): Promise<number> {
  return (await scrape(url)).value(CPU_SECONDS);
}
