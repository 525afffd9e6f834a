import { performance } from 'node:perf_hooks';
import { clearTimeout, setTimeout } from 'node:timers';

import type { UncountedErrorCode } from '../api.js';
import { SluiceTimeoutError, SluiceUnavailableError } from '../errors.js';
import type { RequestOptions } from '../options.js';
import { onAbort } from './on-abort.js';
import { pauseMillis } from './pauses.js';
import { setTimer } from './timers.js';

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
  /** Whether a request may be sent again although the first may have taken effect. */
  readonly isRepeatable: (element: Element) => boolean;
  readonly retrying: Retrying;
}

/** What the retries of all requests of a client have in common. */
export interface Retrying {
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
export class PendingRequest<Element, Result, Value> {
  readonly value: Promise<Value>;
  readonly timeoutMillis: number;
  /** Whether it is sent. Before that, nothing was counted. */
  isSent = false;
  /** Called when the caller is gone. */
  onGone: (() => void) | undefined;
  readonly #startedAt = performance.now();
  #resolve!: (value: Value) => void;
  #reject!: (error: unknown) => void;
  #isOver = false;
  /** Whether an answer was lost before it was sent again. */
  #wasLost = false;
  /** How many addresses have failed it since the last pause. */
  #failures = 0;
  #pauses = 0;
  #endListening: (() => void) | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #pause: NodeJS.Timeout | undefined;

  constructor(
    readonly element: Element,
    private readonly handling: Handling<Element, Result, Value>,
    { signal, timeoutMillis = handling.timeoutMillis }: RequestOptions,
  ) {
    this.timeoutMillis = timeoutMillis;
    this.value = new Promise<Value>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (signal?.aborted) {
      this.leave(signal.reason);
      return;
    }
    if (signal) {
      this.#endListening = onAbort(signal, () => {
        this.leave(signal.reason);
      });
    }
    this.#deadline = setTimer<Late>(outOfTime, timeoutMillis, this);
    this.#send();
  }

  /** Whether it is sent, or was sent before and may have taken effect. */
  get mayHaveCounted(): boolean {
    return this.isSent || this.#wasLost;
  }

  /** Whether its caller has an answer, or waits no longer. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** How long its caller still waits, in ms; Infinity without a time limit. */
  get millisLeft(): number {
    return this.timeoutMillis - (performance.now() - this.#startedAt);
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
    const millis = this.#pauseAfter(error);
    if (millis >= this.millisLeft) {
      this.#end();
      this.#reject(this.#wasLost ? counted(error) : error);
      return;
    }
    this.isSent = false;
    if (error instanceof SluiceUnavailableError) this.#wasLost ||= error.mayHaveCounted;
    this.#pause = setTimeout(() => {
      this.#send();
    }, millis);
  }

  /** Its caller waits no longer. */
  leave(reason: unknown): void {
    this.#end();
    this.#reject(reason);
    this.onGone?.();
  }

  #send(): void {
    try {
      this.handling.send(this);
    } catch (error) {
      this.failed(error);
    }
  }

  /** How long to wait before it is sent again; for ever if it must not be. */
  #pauseAfter(error: unknown): number {
    if (!(error instanceof SluiceUnavailableError)) return Infinity;
    const isLost = error.status === undefined;
    const { isRepeatable, retrying } = this.handling;
    if (error.mayHaveCounted && !(isLost && isRepeatable(this.element))) return Infinity;
    this.#failures += 1;
    const isOfAddress = isLost || error.code === STOPPING;
    if (isOfAddress && this.#failures < retrying.addresses) return 0;
    if (this.#pauses >= retrying.retries) return Infinity;
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

type Late = Pick<PendingRequest<never, never, never>, 'timeoutMillis' | 'mayHaveCounted' | 'leave'>;

function outOfTime(request: Late): void {
  const { timeoutMillis, mayHaveCounted } = request;
  const message = `no answer within ${timeoutMillis} ms`;
  request.leave(new SluiceTimeoutError(message, { mayHaveCounted }));
}

/** The error of a request that was sent before, and may have counted then. */
export function counted(error: unknown): unknown {
  if (!(error instanceof SluiceUnavailableError) || error.mayHaveCounted) return error;
  const { message, status, code, retryAfterSeconds } = error;
  const details = { cause: error, status, code, retryAfterSeconds, mayHaveCounted: true };
  return new SluiceUnavailableError(message, details);
}
