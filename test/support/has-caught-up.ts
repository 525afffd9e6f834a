import { scrape } from './prometheus-text.js';
import { until } from './until.js';

/** Resolves when a replica has no work left over from an outage. */
export async function hasCaughtUp({ url }: { readonly url: string }): Promise<void> {
  await until(async () => {
    const undone = (await scrape(url)).valuesOf('ratelimit_store_catch_up_pending');
    return Object.values(undone).every((count) => count === 0);
  });
}
