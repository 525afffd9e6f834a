import { SluiceTimeoutError, SluiceUnavailableError } from '../errors.js';
import type { RequestOptions } from '../options.js';
import { LONGEST_TIMER_MILLIS, setTimer } from './timers.js';

/** How all requests of one kind are handled. */
export interface Handling<Element, Result, Value> {
  /** Leads to a call of `answered` or `failed`, unless the request is over before. */
  readonly send: (request: PendingRequest<Element, Result, Value>) => void;
  /** @throws SluiceError if the result is an error */
  readonly read: (result: Result) => Value;
  /** Takes a value that arrives after its request is over. */
  readonly late: (element: Element, value: Value) => void;
  /** The default time limit of a request; `Infinity` for none. */
  readonly timeoutMillis: number;
}

/** The pause before an unreachable server is tried again. */
const UNREACHABLE_PAUSE_MILLIS = 100;
/** The part by which a pause may be longer, so that many clients do not retry at once. */
const JITTER = 0.2;

/**
 * A request of one caller until it is answered, out of time, or aborted. It is sent a second time, after the pause that
 * Sluice asks for, if that can't count twice.
 */
export class PendingRequest<Element, Result, Value> {
  readonly value: Promise<Value>;
  readonly timeoutMillis: number;
  /** Whether it is sent. Before that, nothing was counted. */
  isSent = false;
  /** Called when the caller is gone. */
  onGone: (() => void) | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #startedAt = performance.now();
  #resolve!: (value: Value) => void;
  #reject!: (error: unknown) => void;
  #isOver = false;
  #isSentAgain = false;
  #deadline: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | undefined;

  constructor(
    readonly element: Element,
    private readonly handling: Handling<Element, Result, Value>,
    { signal, timeoutMillis = handling.timeoutMillis }: RequestOptions,
  ) {
    this.timeoutMillis = timeoutMillis;
    this.#signal = signal;
    this.value = new Promise<Value>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (signal?.aborted) {
      this.handleEvent();
      return;
    }
    signal?.addEventListener('abort', this);
    this.#deadline = setTimer<Late>(outOfTime, timeoutMillis, this);
    this.#send();
  }

  /** Whether its caller has an answer, or waits no longer. */
  get isOver(): boolean {
    return this.#isOver;
  }

  answered(result: Result): void {
    let value: Value;
    try {
      value = this.handling.read(result);
    } catch (error) {
      this.failed(error);
      return;
    }
    if (this.#isOver) {
      this.handling.late(this.element, value);
      return;
    }
    this.#end();
    this.#resolve(value);
  }

  failed(error: unknown): void {
    if (this.#isOver) return;
    const pauseMillis = this.#isSentAgain ? Infinity : pauseAfter(error);
    const comesBackAfter = performance.now() - this.#startedAt + pauseMillis;
    if (comesBackAfter >= this.timeoutMillis) {
      this.#end();
      this.#reject(error);
      return;
    }
    this.#isSentAgain = true;
    this.isSent = false;
    this.#pause = setTimeout(() => {
      this.#send();
    }, pauseMillis);
  }

  /** Its caller waits no longer. */
  leave(reason: unknown): void {
    this.#end();
    this.#reject(reason);
    this.onGone?.();
  }

  /** Called when the signal is aborted. A method, since creating a function for each request takes time. */
  handleEvent(): void {
    this.leave(this.#signal?.reason);
  }

  #send(): void {
    try {
      this.handling.send(this);
    } catch (error) {
      this.failed(error);
    }
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#deadline);
    clearTimeout(this.#pause);
    this.#signal?.removeEventListener('abort', this);
  }
}

type Late = Pick<PendingRequest<never, never, never>, 'timeoutMillis' | 'isSent' | 'leave'>;

function outOfTime(request: Late): void {
  const { timeoutMillis, isSent } = request;
  const message = `no answer within ${timeoutMillis} ms`;
  request.leave(new SluiceTimeoutError(message, { mayHaveCounted: isSent }));
}

/** How long to wait before a request may be sent again; for ever if it may have counted. */
function pauseAfter(error: unknown): number {
  if (!(error instanceof SluiceUnavailableError) || error.mayHaveCounted) return Infinity;
  const { retryAfterSeconds } = error;
  const millis =
    retryAfterSeconds === undefined ? UNREACHABLE_PAUSE_MILLIS : retryAfterSeconds * 1000;
  const pauseMillis = millis * (1 + JITTER * Math.random());
  return pauseMillis <= LONGEST_TIMER_MILLIS ? pauseMillis : Infinity;
}
