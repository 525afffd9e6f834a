import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

import { tokensIn, UsageReader } from './calls/answer-usage.js';
import { isNeverSent } from './calls/exchange.js';
import { ASKING, demandKnown } from './calls/known-options.js';
import { approvalOf, type Hold, whileHeld } from './calls/permit.js';
import { OWN_LIMIT, RemainingReports } from './calls/remaining-reports.js';
import { retryMillisIn } from './calls/vendor-headers.js';
import { answerWith, watchedBody } from './calls/watched-body.js';
import type { SluiceClient } from './client.js';
import type { Approval } from './decision.js';
import { SluicePermitLostError } from './errors.js';
import type { HitsOf, PermitOptions, ReportedLimits } from './options.js';

/** How a limited `fetch` asks. */
export interface LimitedFetchOptions extends Omit<PermitOptions, 'signal'> {
  /** The key to ask for; a request without one is not limited. */
  readonly keyOf: (url: URL) => string | undefined;
  /**
   * Holds the approval of a request until the body of its answer has ended, is cancelled or has failed, and renews the hold
   * meanwhile. So a limit caps how many requests are at work at a time. A body that nobody reads for this long, and of
   * which more than 64 KiB or the end is still to come, is cancelled. By default nothing is held.
   */
  readonly holdMillis?: number | undefined;
  /**
   * How often a request is sent again whose answer is 429, or 503 with `retry-after-ms` or `Retry-After`. It waits for that
   * time, or for 0.5 s, 1 s, 2 s and so on up to 8 s, but never longer than `maxWaitMillis`, and asks for permission again.
   * A request whose body is a stream is sent once. 0 by default.
   */
  readonly retries?: number | undefined;
  /**
   * Whether the hits of an approval are corrected to the tokens that the answer says were used, as OpenAI and Anthropic say
   * it, once its body is over. A function returns the hits of an answer, or `undefined` if the answer does not say. Bodies in
   * JSON of up to 4 MiB are read, and streams of events. A correction that fails is ignored. `false` by default.
   */
  readonly correctsHits?: boolean | HitsOf | undefined;
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
  retries: true,
  correctsHits: true,
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
/** The waits after a 429 that says no time: each is twice as long as the last one. */
const FIRST_RETRY_MILLIS = 500;
const LONGEST_RETRY_MILLIS = 8000;
/** As the calls of a client by default, so that a hold survives a renewal that is lost. */
const RENEWAL_MILLIS = 5000;
/** How long a correction takes at most. The release of the hold waits for it. */
const CORRECTION_MILLIS = 1000;

type Input = Parameters<typeof fetch>[0];

/**
 * A `fetch` that waits for permission before it sends. The signal of a request also ends its wait. If there was no
 * connection to send a request on, its approval is released; after any other failure the approval stays, since the
 * request may have arrived, unless it is held.
 * @returns a drop-in `fetch`, which also throws as `permit` does; it, or the reading of its answer, rejects with a
 *     SluicePermitLostError if a hold is lost
 * @throws TypeError for an unknown option, unit or value of `pausesKey` or `correctsHits`; RangeError for `retries` below 0
 */
export function limitedFetch(client: SluiceClient, options: LimitedFetchOptions): typeof fetch {
  const limited = new LimitedFetch(client, options);
  return (input, init) =>
    // A request has no fields of its own that could be copied.
    init instanceof Request ? limited.call(new Request(input, init)) : limited.call(input, init);
}

class LimitedFetch {
  readonly #asking: PermitOptions;
  readonly #keyOf: LimitedFetchOptions['keyOf'];
  readonly #send: typeof fetch;
  readonly #retries: number;
  readonly #hitsOf: HitsOf | undefined;
  readonly #pauses: boolean;
  readonly #pausedGroup: string | undefined;
  readonly #reports: RemainingReports | undefined;

  constructor(
    private readonly client: SluiceClient,
    options: LimitedFetchOptions,
  ) {
    demandKnown(options, KNOWN_OPTIONS);
    const { keyOf, pausesKey = false, reportsRemaining = false, ...others } = options;
    const { correctsHits = false, retries = 0, fetch: send = fetch, ...asking } = others;
    const limits = reportsRemaining === true ? { requests: OWN_LIMIT } : reportsRemaining;
    if (limits) demandKnown(limits, KNOWN_UNITS);
    if (!PAUSES.includes(pausesKey)) {
      const given = JSON.stringify(pausesKey);
      throw new TypeError(`pausesKey must be true, false or 'group', not ${given}`);
    }
    if (typeof correctsHits !== 'boolean' && typeof correctsHits !== 'function') {
      const given = JSON.stringify(correctsHits);
      throw new TypeError(`correctsHits must be true, false or a function, not ${given}`);
    }
    if (!(retries >= 0)) throw new RangeError(`retries must be at least 0, not ${retries}`);
    this.#asking = asking;
    this.#keyOf = keyOf;
    this.#send = send;
    this.#retries = retries;
    this.#hitsOf = correctsHits === true ? tokensIn : correctsHits || undefined;
    this.#pauses = pausesKey !== false;
    this.#pausedGroup = pausesKey === 'group' ? asking.group : undefined;
    this.#reports = limits ? new RemainingReports(client, limits, asking.group) : undefined;
  }

  async call(input: Input, init?: RequestInit): Promise<Response> {
    const request = input instanceof Request ? input : undefined;
    const key = this.#keyOf(new URL(input instanceof Request ? input.url : input));
    if (key === undefined) return this.#send(input, init);
    const signal = init?.signal ?? request?.signal;
    const { maxWaitMillis = Infinity } = this.#asking;
    const body: unknown = init?.body ?? request?.body;
    const retries = isOneShot(body) ? 0 : this.#retries;
    for (let retry = 0; ; retry += 1) {
      const answer = await this.#once(key, input, init, signal);
      const pauseMillis = retry < retries ? retryPauseMillis(answer, retry) : undefined;
      if (pauseMillis === undefined || pauseMillis > maxWaitMillis) return answer;
      await answer.body?.cancel().catch(() => undefined);
      await pause(pauseMillis, undefined, { signal }).catch(() => signal?.throwIfAborted());
    }
  }

  /** Asks for permission and sends the request once. */
  async #once(
    key: string,
    input: Input,
    init: RequestInit | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const { client } = this;
    const { holdMillis } = this.#asking;
    const askedAt = performance.now();
    const quota = this.#reports !== undefined;
    const approval = await approvalOf(client, key, { ...this.#asking, signal, quota });
    const { requestId } = approval;
    if (holdMillis === undefined || approval.uncounted) {
      try {
        const { answer } = await this.#exchange(key, approval, () => this.#send(input, init));
        return answer;
      } catch (error) {
        // Nothing used the approval. After any other failure, the call may have reached its target.
        if (isNeverSent(error)) await client.release(key, requestId).catch(() => undefined);
        throw error;
      }
    }
    const renew: Hold['renew'] = (renewing, millis) => {
      const timeoutMillis = Math.min(millis, RENEWAL_MILLIS);
      return client.renew(key, requestId, { signal: renewing, timeoutMillis });
    };
    const hold = { key, requestId, holdMillis, renew };
    return new Promise((resolve, reject) => {
      const work = async (working: AbortSignal): Promise<void> => {
        const send = (): Promise<Response> => this.#send(input, { ...init, signal: working });
        const lost = { millis: holdMillis, signal: working };
        const { answer, over } = await this.#exchange(key, approval, send, lost);
        resolve(answer);
        await over;
      };
      const release = () => client.release(key, requestId).catch(() => undefined);
      whileHeld(hold, askedAt, signal, work, release).catch(reject);
    });
  }

  /**
   * Sends a request with its approval, and tells Sluice what the answer says.
   * @param held its length, and the signal that is aborted when it is lost
   * @returns `over` is fulfilled once the body is over and the hits are corrected
   */
  async #exchange(
    key: string,
    { requestId, uncounted, quota }: Approval,
    send: () => Promise<Response>,
    held?: { readonly millis: number; readonly signal: AbortSignal },
  ): Promise<{ answer: Response; over?: Promise<void> }> {
    /** Node names its own reason for a body that is aborted. */
    const failure = (error: unknown): unknown => {
      const reason: unknown = held?.signal.reason;
      return reason instanceof SluicePermitLostError ? reason : error;
    };
    const answer = await send();
    await this.#tell(key, answer, quota);
    const hitsOf = uncounted ? undefined : this.#hitsOf;
    if (answer.body === null || (!held && !hitsOf)) return { answer };
    const usage = hitsOf && new UsageReader(answer, hitsOf);
    const unread = (): Error => {
      const error = new SluicePermitLostError(key, requestId);
      error.cause = new Error(`nobody has read the body for ${held?.millis} ms`);
      return error;
    };
    const body = watchedBody(answer.body, {
      onChunk: usage && ((chunk) => usage.add(chunk)),
      unreadMillis: held?.millis,
      unread,
      failure,
    });
    const over = body.over.then(async () => {
      const hits = usage?.hits();
      if (hits === undefined) return;
      const timeoutMillis = CORRECTION_MILLIS;
      await this.client.correct(key, requestId, hits, { timeoutMillis }).catch(() => undefined);
    });
    return { answer: answerWith(body.stream, answer), over };
  }

  /** Before the answer is returned, so that the caller's next request finds the report and the pause. */
  async #tell(key: string, { status, headers }: Response, quota: Approval['quota']): Promise<void> {
    const unreportedMillis = (await this.#reports?.report(key, headers, quota)) ?? 0;
    const retryMillis = this.#pauses ? retryMillisIn(status, headers, Date.now()) : 0;
    const pauses = new Map([[this.#reports?.group, unreportedMillis]]);
    pauses.set(this.#pausedGroup, Math.max(pauses.get(this.#pausedGroup) ?? 0, retryMillis));
    for (const [group, millis] of pauses) {
      // Another answer may have asked for a longer pause.
      if (millis > 0)
        await this.client.pause(key, millis, { canShorten: false, group }).catch(() => undefined);
    }
  }
}

/** Whether a body can be sent once only. The body of a Request is a stream as well. */
function isOneShot(body: unknown): boolean {
  return Symbol.asyncIterator in Object(body);
}

/** How long to wait before a request is sent again; undefined if its answer is final. */
function retryPauseMillis({ status, headers }: Response, retry: number): number | undefined {
  const asked = retryMillisIn(status, headers, Date.now());
  if (asked > 0) return asked;
  return status === 429
    ? Math.min(FIRST_RETRY_MILLIS * 2 ** retry, LONGEST_RETRY_MILLIS)
    : undefined;
}
