import { isNeverSent } from './calls/exchange.js';
import { ASKING_OPTIONS, demandKnown } from './calls/known-options.js';
import type { SluiceClient } from './client.js';
import type { PermitOptions } from './options.js';

/** How a limited `fetch` asks. */
export interface LimitedFetchOptions extends Omit<PermitOptions, 'signal'> {
  /** The key to ask for; a request without one is not limited. */
  readonly keyOf: (url: URL) => string | undefined;
  /**
   * Whether an answer of 429 or 503 with `Retry-After` pauses the key for that time, for all callers. A pause that fails
   * is ignored: the next such answer asks for it again. `false` by default.
   */
  readonly pausesKey?: boolean | undefined;
  /** The `fetch` to send with. The global `fetch` by default. */
  readonly fetch?: typeof fetch | undefined;
}

const KNOWN_OPTIONS: Readonly<Record<keyof LimitedFetchOptions, true>> = {
  ...ASKING_OPTIONS,
  maxWaitMillis: true,
  wait: true,
  keyOf: true,
  pausesKey: true,
  fetch: true,
};
/** The longest pause that Sluice takes. */
const LONGEST_PAUSE_MILLIS = 24 * 60 * 60 * 1000;

/**
 * A `fetch` that waits for permission before it sends. The signal of a request also ends its wait. If there was no
 * connection to send a request on, its approval is released; after any other failure the approval stays, since the
 * request may have arrived.
 * @returns a drop-in `fetch`, which also throws as `permit` does
 * @throws TypeError for an unknown option
 */
export function limitedFetch(client: SluiceClient, options: LimitedFetchOptions): typeof fetch {
  demandKnown(options, KNOWN_OPTIONS);
  const { keyOf, pausesKey = false, fetch: send = fetch, ...asking } = options;
  return async (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const key = keyOf(new URL(input instanceof Request ? input.url : input));
    if (key === undefined) return send(input, init);
    const signal = init?.signal ?? request?.signal;
    const requestId = await client.permit(key, { ...asking, signal });
    const answer = await send(input, init).catch(async (error: unknown) => {
      // Nothing used the approval. After any other failure, the call may have reached its target.
      if (isNeverSent(error)) await client.release(key, requestId).catch(() => undefined);
      throw error;
    });
    const millis = pausesKey ? millisToRetry(answer) : undefined;
    // Before the answer is returned, so that the caller's next request finds the pause.
    if (millis !== undefined) await pauseUnnoticed(client, key, millis);
    return answer;
  };
}

async function pauseUnnoticed(client: SluiceClient, key: string, millis: number): Promise<void> {
  await client.pause(key, millis).catch(() => undefined);
}

/**
 * For how long an answer asks its caller to wait: `Retry-After` has seconds or a date (RFC 9110, section 10.2.3).
 * @returns undefined if it asks for nothing
 */
function millisToRetry({ status, headers }: Response): number | undefined {
  const text = headers.get('retry-after');
  if (text === null || (status !== 429 && status !== 503)) return undefined;
  const millis = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return millis > 0 ? Math.min(millis, LONGEST_PAUSE_MILLIS) : undefined;
}
