import { performance } from 'node:perf_hooks';
import { clearTimeout, setTimeout } from 'node:timers';

import type { UncountedErrorCode } from '../api.js';
import { SluiceTimeoutError, SluiceUnavailableError } from '../errors.js';
import type { RequestOptions } from '../options.js';

// From the module, and not the globals, which a test may replace: a request would wait for the test's clock.

/** The longest time of a timer in Node. A longer one would fire at once. */
const LONGEST_TIMER_MILLIS: number = 2 ** 31 - 1;

/** A timer for a time that may be infinite. */
export function setTimer(callback: () => void, millis: number): NodeJS.Timeout | undefined {
  return millis <= LONGEST_TIMER_MILLIS ? setTimeout(callback, millis) : undefined;
}

/**
 * Sends on a connection that is closed after a time.
 * @param gone also closes it when it is aborted
 */
export async function within<T>(
  millis: number,
  send: (connection: AbortSignal) => Promise<T>,
  gone?: AbortSignal,
): Promise<T> {
  const connection = new AbortController();
  const close = (): void => connection.abort();
  const timer = setTimer(close, millis);
  gone?.addEventListener('abort', close);
  try {
    return await send(connection.signal);
  } finally {
    clearTimeout(timer);
    gone?.removeEventListener('abort', close);
  }
}

/** The first pause before an unreachable server is tried again. */
const FIRST_MILLIS = 100;
/** How much longer each further pause is: the default number of retries bridges a restart of a second. */
const GROWTH = 3;
/** The part by which a pause may be longer, so that many clients do not retry at once. */
const JITTER = 0.2;

/**
 * The length of a pause before a request is sent again, in ms. It is never shorter than `Retry-After`.
 * @param retryAfterSeconds what the answer asks for, if it asks
 * @param pauses how many pauses there were before; without `Retry-After`, or if it is 0, each is longer than the last
 * @returns Infinity if no timer can be as long
 */
export function pauseMillis(retryAfterSeconds: number | undefined, pauses: number): number {
  const least = retryAfterSeconds ? retryAfterSeconds * 1000 : FIRST_MILLIS * GROWTH ** pauses;
  const millis = least * (1 + JITTER * Math.random());
  return millis <= LONGEST_TIMER_MILLIS ? millis : Infinity;
}

/** Node warns of a leak from the eleventh listener of a signal on. So each signal has one listener, for all calls. */
class Listeners extends Set<() => void> {
  handleEvent(): void {
    for (const listener of this) listener();
  }
}

const LISTENERS = new WeakMap<AbortSignal, Listeners>();

/** Calls `listener` when the signal is aborted. Returns a function that removes the listener. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const listeners = LISTENERS.get(signal) ?? new Listeners();
  LISTENERS.set(signal, listeners.add(listener));
  // A signal that has the listener ignores it.
  signal.addEventListener('abort', listeners, { once: true });
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) signal.removeEventListener('abort', listeners);
  };
}

/** The answer to a request that has to be sent again, after this time in ms. */
export class Again {
  constructor(readonly millis: number) {}
}

/** How a request is handled. */
export interface Handling<Value> {
  /** Whether it may be sent again although the first may have taken effect. */
  readonly isRepeatable: boolean;
  /** Sends it once. @throws SluiceError if the answer is an error, or there is none */
  send(request: PendingRequest<Value>): Promise<Value | Again>;
  /** Takes a value that arrives after the request is over. */
  late?(value: Value): void;
  /** Its caller has left, or it has failed. */
  left?(request: PendingRequest<Value>): void;
  /** How long to wait in ms before it is sent again; Infinity if it must not be; undefined for what other requests do. */
  pauseAfter?(error: unknown, request: PendingRequest<Value>): number | undefined;
}

/** What all requests of a client have in common. */
export interface Common {
  /** The default time limit. */
  readonly timeoutMillis: number;
  /** How often a request is sent again after a pause. */
  readonly retries: number;
  /** Each of these is tried before a pause. */
  readonly addresses: number;
}

/** A replica that stops answers so. Another may go on. */
export const STOPPING: UncountedErrorCode = 'SHUTTING_DOWN';

/**
 * A request of one caller until it is answered, out of time, or aborted. It is sent again a few times if that can't take
 * two approvals: at once if another address may answer, else after a pause.
 */
export class PendingRequest<Value> {
  readonly value: Promise<Value>;
  readonly timeoutMillis: number;
  /** Whether it is sent. Before that, nothing was counted. */
  isSent = false;
  readonly #startedAt = performance.now();
  #resolve!: (value: Value) => void;
  #reject!: (error: unknown) => void;
  #isOver = false;
  /** Whether it was sent before and may have taken effect. */
  mayHaveCountedBefore = false;
  /** How many addresses have failed it since the last pause. */
  #failures = 0;
  #pauses = 0;
  #gone: AbortController | undefined;
  #endListening: (() => void) | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | undefined;

  constructor(
    private readonly handling: Handling<Value>,
    private readonly common: Common,
    { signal, timeoutMillis = common.timeoutMillis }: RequestOptions,
  ) {
    this.timeoutMillis = timeoutMillis;
    this.value = new Promise<Value>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (signal?.aborted) {
      this.#leave(signal.reason);
      return;
    }
    if (signal) this.#endListening = onAbort(signal, () => this.#leave(signal.reason));
    this.#deadline = setTimer(() => this.#outOfTime(), timeoutMillis);
    void this.#send();
  }

  /** Whether it is sent, or was sent before and may have taken effect. */
  get mayHaveCounted(): boolean {
    return this.isSent || this.mayHaveCountedBefore;
  }

  /** Whether its caller has an answer, or waits no longer. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Aborted once its caller waits no longer. */
  get gone(): AbortSignal {
    this.#gone ??= new AbortController();
    return this.#gone.signal;
  }

  /** How long its caller still waits, in ms; Infinity without a time limit. */
  get #millisLeft(): number {
    return this.timeoutMillis - (performance.now() - this.#startedAt);
  }

  #leave(reason: unknown): void {
    this.#end();
    this.#reject(reason);
    this.#gone?.abort();
    this.handling.left?.(this);
  }

  #outOfTime(): void {
    const { timeoutMillis, mayHaveCounted } = this;
    const message = `no answer within ${timeoutMillis} ms`;
    this.#leave(new SluiceTimeoutError(message, { mayHaveCounted }));
  }

  async #send(): Promise<void> {
    this.isSent = true;
    try {
      const value = await this.handling.send(this);
      if (value instanceof Again) {
        if (!this.#isOver) this.#sendAfter(value.millis);
      } else if (this.#isOver) {
        this.handling.late?.(value);
      } else {
        this.#end();
        this.#resolve(value);
      }
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    if (this.#isOver) return;
    this.isSent = false;
    if (error instanceof SluiceUnavailableError) this.mayHaveCountedBefore ||= error.mayHaveCounted;
    const millis = this.handling.pauseAfter?.(error, this) ?? this.#pauseAfter(error);
    if (millis < this.#millisLeft) this.#sendAfter(millis);
    else this.#leave(this.mayHaveCountedBefore ? counted(error) : error);
  }

  #sendAfter(millis: number): void {
    this.#pause = setTimeout(() => void this.#send(), millis);
  }

  /** How long to wait before it is sent again; for ever if it must not be. */
  #pauseAfter(error: unknown): number {
    if (!(error instanceof SluiceUnavailableError)) return Infinity;
    const isLost = error.status === undefined;
    const { retries, addresses } = this.common;
    if (error.mayHaveCounted && !(isLost && this.handling.isRepeatable)) return Infinity;
    this.#failures += 1;
    const isOfAddress = isLost || error.code === STOPPING;
    if (isOfAddress && this.#failures < addresses) return 0;
    if (this.#pauses >= retries) return Infinity;
    const millis = pauseMillis(error.retryAfterSeconds, this.#pauses);
    this.#failures = 0;
    this.#pauses += 1;
    return millis;
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#deadline);
    clearTimeout(this.#pause);
    this.#endListening?.();
  }
}

/** The error of a request that was sent before, and may have counted then. */
function counted(error: unknown): unknown {
  if (!(error instanceof SluiceUnavailableError) || error.mayHaveCounted) return error;
  const { message, status, code, retryAfterSeconds } = error;
  const details = { cause: error, status, code, retryAfterSeconds, mayHaveCounted: true };
  return new SluiceUnavailableError(message, details);
}
