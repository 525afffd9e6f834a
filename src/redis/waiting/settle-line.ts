import type { Clock } from '../../common/clock.js';
import { backoffMillis } from '../shared/backoff.js';
import type { StoreObserver } from '../shared/store-observer.js';

/** The most settle calls under way at a time. Together they take Redis a millisecond, between checks. */
const MAX_UNDER_WAY = 16;
const FIRST_RETRY_MILLIS = 50;

/** A queue that needs a settle call. */
export interface Unsettled {
  /** The name of its state in Redis. */
  readonly name: string;
  /** Its turn has come. Resolves when the call has ended and its reply is processed. */
  settle(): Promise<void>;
  /** Its turn has come, but the store is known to be down. */
  notAsked(): void;
}

export interface SettleLineParts {
  readonly clock: Clock;
  /** Whether the store can be asked about a name in Redis, as far as is known. */
  readonly isAvailable: (name: string) => boolean;
  readonly observer: Pick<StoreObserver, 'catchingUp'>;
}

/**
 * The line in which the queues of this replica wait for their settle calls. It is mostly empty. After an outage tens of
 * thousands of keys need a settle at once. Then few calls are under way, and all failed ones wait for one timer.
 */
export class SettleLine {
  /** In the order of arrival. */
  readonly #line = new Set<Unsettled>();
  /** The queues whose calls failed or could not be sent. */
  #failed = new Set<Unsettled>();
  #underWay = 0;
  #failures = 0;
  #cancelRetry: (() => void) | undefined;
  #told = 0;

  constructor(private readonly parts: SettleLineParts) {}

  /** Settles the queue when its turn has come, which may be at once. */
  join(queue: Unsettled): void {
    this.#failed.delete(queue);
    this.#line.add(queue);
    this.#next();
  }

  /** Settles the queue again later, since its call has failed. */
  joinLater(queue: Unsettled): void {
    this.#failed.add(queue);
    this.#retryLater();
    this.#tell();
  }

  /** The queue needs no settle any more. */
  leave(queue: Unsettled): void {
    this.#line.delete(queue);
    this.#failed.delete(queue);
    if (this.#failed.size === 0) this.#endRetry();
    this.#tell();
  }

  /** The store is up again. */
  onStoreAvailable(): void {
    if (this.#failed.size > 0) this.#retry();
  }

  #next(): void {
    for (const queue of this.#line) {
      if (this.#underWay === MAX_UNDER_WAY) break;
      this.#line.delete(queue);
      if (this.parts.isAvailable(queue.name)) {
        void this.#settle(queue);
      } else {
        this.#failed.add(queue);
        queue.notAsked();
        this.#retryLater();
      }
    }
    this.#tell();
  }

  async #settle(queue: Unsettled): Promise<void> {
    this.#underWay += 1;
    await queue.settle();
    this.#underWay -= 1;
    if (this.#failed.size === 0) this.#failures = 0;
    this.#next();
  }

  #retryLater(): void {
    if (this.#cancelRetry || this.#failed.size === 0) return;
    this.#failures += 1;
    const delay = backoffMillis(this.#failures, FIRST_RETRY_MILLIS);
    this.#cancelRetry = this.parts.clock.after(delay, () => {
      this.#retry();
    });
  }

  #endRetry(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
  }

  #retry(): void {
    this.#endRetry();
    for (const queue of this.#failed) this.#line.add(queue);
    this.#failed = new Set();
    this.#next();
  }

  #tell(): void {
    const undone = this.#line.size + this.#failed.size;
    if (undone === this.#told) return;
    this.#told = undone;
    this.parts.observer.catchingUp('settle', undone);
  }
}
