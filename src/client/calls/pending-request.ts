import { SluiceTimeoutError, SluiceUnavailableError } from '../errors.js';
import type { RequestOptions } from '../options.js';
import { LONGEST_TIMER_MILLIS, setTimer } from './timers.js';

/** How all requests of one kind are handled. */
export interface Handling<Element, Result, Value> {
  /** Has `answered` or `failed` called, unless the request is over before. */
  readonly send: (request: PendingRequest<Element, Result, Value>) => void;
  /** @throws SluiceError where the result is none to go on with */
  readonly read: (result: Result) => Value;
  /** Takes the value of a request that was over before it came. */
  readonly late: (element: Element, value: Value) => void;
  /** The longest one may take that says nothing else; `Infinity` has no end. */
  readonly timeoutMillis: number;
}

/** Before a server that was not there is sought again. */
const UNREACHABLE_PAUSE_MILLIS = 100;
/** By so much of itself a pause may be longer, so that many clients do not come back at once. */
const JITTER = 0.2;

/**
 * A request of one caller until it is answered, out of time, or aborted. It is sent once more where that can count
 * nothing twice, after the pause that Sluice asks for.
 */
export class PendingRequest<Element, Result, Value> {
  readonly value: Promise<Value>;
  readonly timeoutMillis: number;
  /** Whether it is sent. Before, nothing was counted. */
  isSent = false;
  /** What else ends when the caller is gone. */
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

  /** Whether nobody waits for its answer any more. */
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

  /** The signal is aborted. A method, since a function of its own for each request takes time. */
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

/** How long to wait before a request may be sent once more; for ever where it may have counted. */
function pauseAfter(error: unknown): number {
  if (!(error instanceof SluiceUnavailableError) || error.mayHaveCounted) return Infinity;
  const { retryAfterSeconds } = error;
  const millis =
    retryAfterSeconds === undefined ? UNREACHABLE_PAUSE_MILLIS : retryAfterSeconds * 1000;
  const pauseMillis = millis * (1 + JITTER * Math.random());
  return pauseMillis <= LONGEST_TIMER_MILLIS ? pauseMillis : Infinity;
}
