import type { SluiceClient } from './client.js';
import type { PermitOptions } from './options.js';

/** How a limited `fetch` asks. */
export interface LimitedFetchOptions extends Omit<PermitOptions, 'signal'> {
  /** The key to ask for; a request without one is not limited. */
  readonly keyOf: (url: URL) => string | undefined;
  /** The `fetch` to send with. The global `fetch` by default. */
  readonly fetch?: typeof fetch | undefined;
}

/**
 * A `fetch` that waits for permission before it sends. The signal of a request also ends its wait.
 * @returns a drop-in `fetch`, which also throws as `permit` does
 */
export function limitedFetch(client: SluiceClient, options: LimitedFetchOptions): typeof fetch {
  const { keyOf, fetch: send = fetch, ...asking } = options;
  return async (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const key = keyOf(new URL(input instanceof Request ? input.url : input));
    const signal = init?.signal ?? request?.signal;
    if (key !== undefined) await client.permit(key, { ...asking, signal });
    return send(input, init);
  };
}
