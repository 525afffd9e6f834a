import { approvalOf } from './calls/permit.js';
import { isNeverSent } from './calls/exchange.js';
import { ASKING, demandKnown } from './calls/known-options.js';
import { OWN_LIMIT, RemainingReports } from './calls/remaining-reports.js';
import { retryMillisIn } from './calls/vendor-headers.js';
import type { SluiceClient } from './client.js';
import type { PermitOptions, ReportedLimits } from './options.js';

/** How a limited `fetch` asks. */
export interface LimitedFetchOptions extends Omit<PermitOptions, 'signal'> {
  /** The key to ask for; a request without one is not limited. */
  readonly keyOf: (url: URL) => string | undefined;
  /**
   * Whether an answer of 429 or 503 with `retry-after-ms` or `Retry-After` pauses the key for that time, for all callers. With
   * `'group'`, only the group of the call is paused, or the key if the call names none. A pause that fails is ignored:
   * the next such answer asks for it again. `false` by default.
   */
  readonly pausesKey?: boolean | 'group' | undefined;
  /**
   * Whether an answer whose headers say that less remains than Sluice believes is reported to Sluice, at most once a
   * second for each key and limit: the first number, then the least of the second at its end, and 0 at once. With `true`, the requests that remain are reported to the key's own limit. An object
   * has the names of the limits that requests and tokens are reported to; the key's own limit is `default`. For a limit
   * that is not a fixed window, the key is paused if nothing remains, or with `perGroup` the group. A report that fails is
   * ignored. `false` by default.
   */
  readonly reportsRemaining?: boolean | ReportedLimits | undefined;
  /** The `fetch` to send with. The global `fetch` by default. */
  readonly fetch?: typeof fetch | undefined;
}

const KNOWN_OPTIONS: Readonly<Record<keyof LimitedFetchOptions, true>> = {
  ...ASKING,
  maxWaitMillis: true,
  onProgress: true,
  wait: true,
  keyOf: true,
  pausesKey: true,
  reportsRemaining: true,
  fetch: true,
};
const KNOWN_UNITS: Readonly<Record<keyof ReportedLimits, true>> = {
  requests: true,
  tokens: true,
  inputTokens: true,
  outputTokens: true,
  perGroup: true,
};
/** Any other value of `pausesKey`, as plain JavaScript may have, would pause the whole key. */
const PAUSES: readonly unknown[] = [true, false, 'group'];

/**
 * A `fetch` that waits for permission before it sends. The signal of a request also ends its wait. If there was no
 * connection to send a request on, its approval is released; after any other failure the approval stays, since the
 * request may have arrived.
 * @returns a drop-in `fetch`, which also throws as `permit` does
 * @throws TypeError for an unknown option, unit or value of `pausesKey`
 */
export function limitedFetch(client: SluiceClient, options: LimitedFetchOptions): typeof fetch {
  demandKnown(options, KNOWN_OPTIONS);
  const { keyOf, pausesKey = false, reportsRemaining = false, ...others } = options;
  const { fetch: send = fetch, ...asking } = others;
  const limits = reportsRemaining === true ? { requests: OWN_LIMIT } : reportsRemaining;
  if (limits) demandKnown(limits, KNOWN_UNITS);
  if (!PAUSES.includes(pausesKey)) {
    const given = JSON.stringify(pausesKey);
    throw new TypeError(`pausesKey must be true, false or 'group', not ${given}`);
  }
  const reports = limits ? new RemainingReports(client, limits, asking.group) : undefined;
  const pausedGroup = pausesKey === 'group' ? asking.group : undefined;
  return async (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const key = keyOf(new URL(input instanceof Request ? input.url : input));
    if (key === undefined) return send(input, init);
    const signal = init?.signal ?? request?.signal;
    const quota = reports !== undefined;
    const approval = await approvalOf(client, key, { ...asking, signal, quota });
    const answer = await send(input, init).catch(async (error: unknown) => {
      // Nothing used the approval. After any other failure, the call may have reached its target.
      if (isNeverSent(error)) await client.release(key, approval.requestId).catch(() => undefined);
      throw error;
    });
    // Both before the answer is returned, so that the caller's next request finds the report and the pause.
    const unreportedMillis = (await reports?.report(key, answer.headers, approval.quota)) ?? 0;
    const { status, headers } = answer;
    const retryMillis = pausesKey ? retryMillisIn(status, headers, Date.now()) : 0;
    const pauses = new Map([[reports?.group, unreportedMillis]]);
    pauses.set(pausedGroup, Math.max(pauses.get(pausedGroup) ?? 0, retryMillis));
    for (const [group, millis] of pauses) {
      // Another answer may have asked for a longer pause.
      if (millis > 0)
        await client.pause(key, millis, { canShorten: false, group }).catch(() => undefined);
    }
    return answer;
  };
}
