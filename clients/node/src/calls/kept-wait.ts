import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import type { CheckElement, KnownErrorCode } from '../api.js';
import type { Decision, WaitProgress } from '../decision.js';
import { SluiceError, SluiceUnavailableError } from '../errors.js';
import type { WaitOptions } from '../options.js';
import { turnIn } from './answers.js';
import {
  type Common,
  counted,
  pauseMillis,
  type PendingRequest,
  STOPPING,
  within,
} from './pending-request.js';
import { checkCall, type Service } from './service.js';

/** A wait as its caller asks for it. */
export interface Wait extends Pick<WaitOptions, 'onProgress'> {
  readonly element: CheckElement & Pick<WaitOptions, 'maxWaitMillis'>;
}

/** What all waits of a client that keep their places have in common. */
export interface Keeping extends Common {
  readonly service: Service;
  /** The longest request, in ms. */
  readonly longPollMillis: number;
  /** @returns false if there was nothing to release */
  readonly release: (key: string, requestId: string) => Promise<boolean>;
}

const TAKEN_OVER: KnownErrorCode = 'PLACE_TAKEN_OVER';
const USED: KnownErrorCode = 'REQUEST_ID_USED';
/** Between two requests at least, if the first has ended before it was due. */
const LEAST_INTERVAL_MILLIS = 1000;
/** From here on, pauses grow no longer: 2.7 s, which is a small part of the time for which a place is kept. */
const LAST_GROWTH = 3;
/** A request may arrive after the DELETE that was sent after it. */
const OVERTAKEN_MILLIS = 1000;

/**
 * A wait that keeps its place in the queue: a chain of requests with one id, each of which goes on where the one before
 * has ended, whichever replica gets it.
 */
export class KeptWait {
  readonly #gone = new AbortController();
  readonly #endsAt: number;
  #requestId = randomUUID();
  #longestMillis: number;
  #wasCut = false;
  #hasProgress = false;
  /** Whether it may have its place. */
  #mayHaveCounted = false;
  #failingSince: number | undefined;
  /** How many addresses have failed it since the last pause. */
  #failures = 0;
  #pauses = 0;

  constructor(
    private readonly wait: Wait,
    private readonly request: PendingRequest<Decision>,
    private readonly keepMillis: number,
    private readonly keeping: Keeping,
  ) {
    this.#endsAt = performance.now() + (wait.element.maxWaitMillis ?? Infinity);
    this.#longestMillis = keeping.longPollMillis;
    request.gone.addEventListener('abort', () => this.leave());
  }

  /**
   * Asks until Sluice decides.
   * @throws SluiceError if Sluice rejects the check or can't be reached for too long; what `onProgress` throws; anything
   *     once its caller has left
   */
  async decision(): Promise<Decision> {
    for (;;) {
      const askedAt = performance.now();
      const seconds = this.#nextSeconds(askedAt);
      const dueMillis = Math.min(seconds * 1000, LEAST_INTERVAL_MILLIS);
      let pauseMillis: number;
      try {
        const turn = await this.#ask(seconds);
        if ('approved' in turn) return turn;
        this.#placed();
        this.#hasProgress = true;
        this.#wasCut = false;
        if (this.#endsAt <= performance.now()) return this.#denied(turn);
        this.wait.onProgress?.(turn);
        pauseMillis = askedAt + dueMillis - performance.now();
      } catch (error) {
        pauseMillis = this.#pauseAfter(error, askedAt);
      }
      if (pauseMillis > 0) await sleep(pauseMillis, undefined, { signal: this.#gone.signal });
    }
  }

  /** Its caller has left: ends its request, and gives back its place or its approval. */
  leave(): void {
    if (this.#gone.signal.aborted) return;
    this.#gone.abort();
    if (this.request.mayHaveCounted) void this.#giveBack();
  }

  /** For how long to ask now: a caller that wants to know its place is told at once. */
  #nextSeconds(now: number): number {
    if (this.wait.onProgress && !this.#hasProgress) return 0;
    return Math.ceil(Math.min(this.#longestMillis, Math.max(0, this.#endsAt - now)) / 1000);
  }

  async #ask(seconds: number): Promise<Decision | WaitProgress> {
    const { service, timeoutMillis } = this.keeping;
    this.request.isSent = true;
    const kept = { requestId: this.#requestId, keepMillis: this.keepMillis };
    const call = checkCall({ ...this.wait.element, ...kept }, { canWait: true });
    const headers = { Prefer: `wait=${seconds}` };
    const gone = this.#gone.signal;
    // An answer may come later than it is due by as much as any answer may take.
    const answer = within(
      seconds * 1000 + timeoutMillis,
      (signal) => service.send({ ...call, headers, signal, gone }),
      gone,
    );
    return turnIn(await answer);
  }

  /** How long to wait before it asks again, in ms. @throws the error if it must not */
  #pauseAfter(error: unknown, askedAt: number): number {
    if (this.request.isOver) throw error;
    const now = performance.now();
    if (isConflict(error, TAKEN_OVER)) this.#placed();
    else if (error instanceof SluiceUnavailableError) this.#mayHaveCounted ||= error.mayHaveCounted;
    this.request.isSent = this.#mayHaveCounted;
    // The answer with its approval was lost until the approval had lapsed.
    if (isConflict(error, USED)) this.#requestId = randomUUID();
    if (isConflict(error, TAKEN_OVER) || isConflict(error, USED)) {
      return askedAt + LEAST_INTERVAL_MILLIS - now;
    }
    if (!(error instanceof SluiceUnavailableError)) throw error;
    this.#shorten(error.status, now - askedAt);
    const millis = this.#retryMillis(error, now);
    if (millis < this.request.millisLeft) return millis;
    throw this.#mayHaveCounted ? counted(error) : error;
  }

  /** Sluice has answered that the wait has its place. */
  #placed(): void {
    this.#mayHaveCounted = true;
    this.#failingSince = undefined;
    this.#failures = 0;
    this.#pauses = 0;
  }

  /**
   * How long to wait in ms before it is sent again after a failure; Infinity if it must not be. Each address is asked before
   * a pause. The wait goes on while its place may be kept, and as often as any request in any case.
   */
  #retryMillis(error: SluiceUnavailableError, now: number): number {
    const { status, code, retryAfterSeconds } = error;
    // A replica that stops keeps the places of its waiters, and asks for no pause.
    const isHandedOver = retryAfterSeconds === 0;
    this.#failingSince = isHandedOver ? now : (this.#failingSince ?? now);
    this.#failures += 1;
    const isOfAddress = isHandedOver || status === undefined || code === STOPPING;
    // One address may lead to several replicas.
    const addresses = Math.max(this.keeping.addresses, isHandedOver ? 2 : 1);
    if (isOfAddress && this.#failures < addresses) return 0;
    const millis = pauseMillis(retryAfterSeconds, Math.min(this.#pauses, LAST_GROWTH));
    const keptUntil = Math.min(this.#failingSince + this.keepMillis, this.#endsAt);
    const isKept = this.#mayHaveCounted && now + millis < keptUntil;
    if (!isKept && this.#pauses >= this.keeping.retries) return Infinity;
    this.#failures = 0;
    this.#pauses += 1;
    return millis;
  }

  /** Asks for shorter requests if something on the way, such as a proxy, has ended two in a row. */
  #shorten(status: number | undefined, lastedMillis: number): void {
    const wasCut = status !== 503 && lastedMillis > LEAST_INTERVAL_MILLIS;
    if (wasCut && this.#wasCut) this.#longestMillis = lastedMillis / 2;
    this.#wasCut = wasCut;
  }

  /** Its time is over, although Sluice counts from a later moment: the place was lost in between. */
  #denied({ waitMillis }: WaitProgress): Decision {
    void this.#giveBack();
    return { approved: false, retryAfterSeconds: Math.max(1, Math.ceil(waitMillis / 1000)) };
  }

  async #giveBack(): Promise<void> {
    const release = (): Promise<boolean> =>
      this.keeping.release(this.wait.element.key, this.#requestId).catch(() => false);
    if (await release()) return;
    await sleep(OVERTAKEN_MILLIS);
    await release();
  }
}

function isConflict(error: unknown, code: KnownErrorCode): boolean {
  return error instanceof SluiceError && error.status === 409 && error.code === code;
}
