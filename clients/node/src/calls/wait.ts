import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import type { CheckElement, KnownErrorCode } from '../api.js';
import type { Decision, WaitProgress } from '../decision.js';
import { SluiceError, SluiceUnavailableError } from '../errors.js';
import type { WaitOptions } from '../options.js';
import { decisionIn, turnIn } from './answers.js';
import {
  Again,
  type Common,
  type Handling,
  pauseMillis,
  type PendingRequest,
  STOPPING,
  within,
} from './pending-request.js';
import { checkCall, type Service } from './service.js';

/** What all waits of a client have in common. */
export interface Waiting extends Common {
  readonly service: Service;
  /** How long a wait keeps its place without a connection, in ms. With 0, a wait is one request. */
  readonly keepMillis: number;
  /** The longest request, in ms. */
  readonly longPollMillis: number;
  /** @returns false if there was nothing to release, or it has failed */
  readonly release: (key: string, requestId: string) => Promise<boolean>;
  /** The longest time for which Sluice keeps a place, as it has said, and until when that is believed, in ms. */
  kept: { readonly longestMillis: number; readonly believedUntil: number };
}

const TAKEN_OVER: KnownErrorCode = 'PLACE_TAKEN_OVER';
const USED: KnownErrorCode = 'REQUEST_ID_USED';
/** Between two requests at least, if the first has ended before it was due. */
const LEAST_INTERVAL_MILLIS = 1000;
/** From here on, pauses grow no longer: 2.7 s, which is a small part of the time for which a place is kept. */
const LAST_GROWTH = 3;
/** A request may arrive after the DELETE that was sent after it. */
const OVERTAKEN_MILLIS = 1000;
/** The service of before does not know these parameters. */
const UNKNOWN = /^unknown parameter (?:keepMillis|requestId);/;
const TOO_LONG = /^keepMillis must be at most (\d+)/;
/** How long what Sluice has said about the longest time is believed: meanwhile its replicas may be updated. */
const BELIEVED_MILLIS = 600_000;

/**
 * A wait that keeps its place in the queue: a chain of requests with one id, each of which goes on where the one before
 * has ended, whichever replica gets it. If Sluice does not keep places, it is one request.
 */
export class Wait implements Handling<Decision> {
  /** If one that was lost is approved, nobody renews its hold, so that the approval ends with it. */
  readonly isRepeatable: boolean;
  readonly #endsAt: number;
  #keepMillis: number;
  #requestId = randomUUID();
  #longestMillis: number;
  #askedAt = 0;
  #wasCut = false;
  #hasProgress = false;
  #failingSince: number | undefined;
  /** How many addresses have failed it since the last pause. */
  #failures = 0;
  #pauses = 0;

  constructor(
    private readonly element: CheckElement & Pick<WaitOptions, 'maxWaitMillis'>,
    private readonly onProgress: WaitOptions['onProgress'],
    private readonly waiting: Waiting,
  ) {
    const { longestMillis, believedUntil } = waiting.kept;
    const now = performance.now();
    this.#keepMillis = Math.min(waiting.keepMillis, now < believedUntil ? longestMillis : Infinity);
    this.#endsAt = now + (element.maxWaitMillis ?? Infinity);
    this.#longestMillis = waiting.longPollMillis;
    this.isRepeatable = element.holdMillis !== undefined;
  }

  async send(request: PendingRequest<Decision>): Promise<Decision | Again> {
    const { gone } = request;
    const { service, timeoutMillis } = this.waiting;
    if (this.#keepMillis === 0) {
      const call = checkCall(this.element, { canWait: true });
      return decisionIn(await service.send({ ...call, signal: gone, isWithdrawn: true }));
    }
    this.#askedAt = performance.now();
    const seconds = this.#nextSeconds(this.#askedAt);
    const kept = { requestId: this.#requestId, keepMillis: this.#keepMillis };
    const call = checkCall({ ...this.element, ...kept }, { canWait: true });
    const headers = { Prefer: `wait=${seconds}` };
    try {
      // An answer may come later than it is due by as much as any answer may take.
      const answer = await within(
        seconds * 1000 + timeoutMillis,
        (signal) => service.send({ ...call, headers, signal, gone }),
        gone,
      );
      const turn = turnIn(answer);
      if ('approved' in turn) return turn;
      this.#placed(request);
      this.#hasProgress = true;
      this.#wasCut = false;
      if (this.#endsAt <= performance.now()) return this.#denied(turn);
      this.onProgress?.(turn);
      return this.#again(Math.min(seconds * 1000, LEAST_INTERVAL_MILLIS));
    } catch (error) {
      const code = error instanceof SluiceError && error.status === 409 ? error.code : undefined;
      if (request.isOver || (code !== TAKEN_OVER && code !== USED)) throw error;
      if (code === TAKEN_OVER) this.#placed(request);
      // The answer with its approval was lost until the approval had lapsed.
      else this.#requestId = randomUUID();
      request.isSent = false;
      return this.#again(LEAST_INTERVAL_MILLIS);
    }
  }

  /** An approval that arrives after its caller has gone is released. */
  late(decision: Decision): void {
    if (decision.approved) void this.waiting.release(this.element.key, decision.requestId);
  }

  /** Its caller has left, or it has failed: gives back its place or its approval. */
  left(request: PendingRequest<Decision>): void {
    if (this.#keepMillis > 0 && request.mayHaveCounted) void this.#giveBack();
  }

  /** @returns undefined if it is one request */
  pauseAfter(error: unknown, request: PendingRequest<Decision>): number | undefined {
    if (this.#keepMillis === 0) return undefined;
    const longestMillis = longestKept(error);
    if (longestMillis !== undefined && longestMillis < this.#keepMillis) {
      const believedUntil = performance.now() + BELIEVED_MILLIS;
      this.waiting.kept = { longestMillis, believedUntil };
      this.left(request);
      this.#requestId = randomUUID();
      this.#keepMillis = longestMillis;
      return 0;
    }
    if (!(error instanceof SluiceUnavailableError)) return Infinity;
    this.#shorten(error.status);
    return this.#retryMillis(error, request.mayHaveCounted);
  }

  /** For how long to ask now: a caller that wants to know its place is told at once. */
  #nextSeconds(now: number): number {
    if (this.onProgress && !this.#hasProgress) return 0;
    return Math.ceil(Math.min(this.#longestMillis, Math.max(0, this.#endsAt - now)) / 1000);
  }

  /** Asks again, at this time after the last request at the earliest. */
  #again(millis: number): Again {
    return new Again(Math.max(0, this.#askedAt + millis - performance.now()));
  }

  /** Sluice has answered that the wait has its place. */
  #placed(request: PendingRequest<Decision>): void {
    request.mayHaveCountedBefore = true;
    this.#failingSince = undefined;
    this.#failures = 0;
    this.#pauses = 0;
  }

  /**
   * How long to wait in ms before it is sent again after a failure; Infinity if it must not be. Each address is asked before
   * a pause. The wait goes on while its place may be kept, and as often as any request in any case.
   */
  #retryMillis(error: SluiceUnavailableError, mayHavePlace: boolean): number {
    const { status, code, retryAfterSeconds } = error;
    const now = performance.now();
    // A replica that stops keeps the places of its waiters, and asks for no pause.
    const isHandedOver = retryAfterSeconds === 0;
    this.#failingSince = isHandedOver ? now : (this.#failingSince ?? now);
    this.#failures += 1;
    const isOfAddress = isHandedOver || status === undefined || code === STOPPING;
    // One address may lead to several replicas.
    const addresses = Math.max(this.waiting.addresses, isHandedOver ? 2 : 1);
    if (isOfAddress && this.#failures < addresses) return 0;
    const millis = pauseMillis(retryAfterSeconds, Math.min(this.#pauses, LAST_GROWTH));
    const keptUntil = Math.min(this.#failingSince + this.#keepMillis, this.#endsAt);
    const isKept = mayHavePlace && now + millis < keptUntil;
    if (!isKept && this.#pauses >= this.waiting.retries) return Infinity;
    this.#failures = 0;
    this.#pauses += 1;
    return millis;
  }

  /** Asks for shorter requests if something on the way, such as a proxy, has ended two in a row. */
  #shorten(status: number | undefined): void {
    const lastedMillis = performance.now() - this.#askedAt;
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
    const id = this.#requestId;
    const release = (): Promise<boolean> => this.waiting.release(this.element.key, id);
    if (await release()) return;
    await sleep(OVERTAKEN_MILLIS);
    await release();
  }
}

/** The longest time for which Sluice keeps a place, in ms, if it has rejected a check for that. */
function longestKept(error: unknown): number | undefined {
  if (!(error instanceof SluiceError)) return undefined;
  if (UNKNOWN.test(error.message)) return 0;
  const [, longest] = TOO_LONG.exec(error.message) ?? [];
  return longest === undefined ? undefined : Number(longest);
}
