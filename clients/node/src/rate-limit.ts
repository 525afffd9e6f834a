import { demandKnown } from './calls/known-options.js';
import { quotaHeaders } from './calls/quota.js';
import type { SluiceClient } from './client.js';
import { SluiceUnavailableError } from './errors.js';

/** How the middleware limits requests. */
export interface RateLimitOptions<Request> {
  /** The key to check; a request without one passes. */
  readonly keyOf: (request: Request) => string | undefined;
  /** The lane of a request, of a key with lanes. The key's last lane by default. */
  readonly laneOf?: ((request: Request) => string | undefined) | undefined;
  /** The group of a request, such as its tenant, of a key with fair groups. By default no group is named. */
  readonly groupOf?: ((request: Request) => string | undefined) | undefined;
  /** Whether requests wait for their turn. `false` by default. */
  readonly wait?: boolean | undefined;
  /** The longest wait of a request. No limit by default. */
  readonly maxWaitMillis?: number | undefined;
  /** For requests without a decision: `deny` answers 503, `allow` lets them pass. `deny` by default. */
  readonly outagePolicy?: 'deny' | 'allow' | undefined;
  /**
   * Whether responses have `RateLimit-Policy` and `RateLimit`. `true` by default. With `false`, the checks of concurrent
   * requests share a request to Sluice, which takes less time.
   */
  readonly quotaHeaders?: boolean | undefined;
}

/** The part of a response of Node or Express that the middleware needs. */
export interface LimitedResponse {
  statusCode: number;
  setHeader(name: string, value: string | number): unknown;
  end(body: string): unknown;
  on(event: 'close', listener: () => void): unknown;
}

/** A middleware of Express, Connect and the like. */
export type Middleware<Request> = (
  request: Request,
  response: LimitedResponse,
  next: (error?: unknown) => void,
) => void;

const KNOWN_OPTIONS: Readonly<Record<keyof RateLimitOptions<never>, true>> = {
  keyOf: true,
  laneOf: true,
  groupOf: true,
  wait: true,
  maxWaitMillis: true,
  outagePolicy: true,
  quotaHeaders: true,
};

/**
 * Lets requests pass that Sluice approves, and answers denied requests with a 429 and `Retry-After`.
 * @throws TypeError for an unknown option
 */
export function rateLimit<Request>(
  client: SluiceClient,
  options: RateLimitOptions<Request>,
): Middleware<Request> {
  demandKnown(options, KNOWN_OPTIONS);
  const { keyOf, laneOf, groupOf, wait = false, maxWaitMillis } = options;
  const { outagePolicy = 'deny', quotaHeaders: hasQuota = true } = options;
  const limit = async (request: Request, response: LimitedResponse): Promise<boolean> => {
    const key = keyOf(request);
    if (key === undefined) return true;
    const disconnected = new AbortController();
    response.on('close', () => disconnected.abort());
    const { signal } = disconnected;
    const asking = { signal, lane: laneOf?.(request), group: groupOf?.(request) };
    try {
      const decision = await (wait
        ? client.wait(key, { ...asking, maxWaitMillis })
        : client.check(key, { ...asking, quota: hasQuota }));
      const headers = hasQuota && decision.quota ? quotaHeaders(decision.quota) : {};
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      if (!decision.approved) {
        answer(response, 429, 'rate limit exceeded', decision.retryAfterSeconds);
      }
      return decision.approved;
    } catch (error) {
      if (signal.aborted) return false;
      if (!(error instanceof SluiceUnavailableError)) {
        // Express would answer the client with the status of the cause, although a 401 of Sluice is about this app.
        throw new Error('Sluice rejected the check', { cause: error });
      }
      if (outagePolicy === 'allow') return true;
      answer(response, 503, 'rate limiter unavailable', error.retryAfterSeconds ?? 1);
      return false;
    }
  };
  return (request, response, next) => {
    limit(request, response).then((passes) => {
      if (passes) next();
    }, next);
  };
}

function answer(
  response: LimitedResponse,
  status: number,
  error: string,
  retryAfterSeconds: number,
): void {
  response.statusCode = status;
  response.setHeader('Content-Type', 'application/json');
  response.setHeader('Cache-Control', 'no-store');
  response.setHeader('Retry-After', retryAfterSeconds);
  response.end(JSON.stringify({ error }));
}
