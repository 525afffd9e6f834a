import type { Clock } from '../../common/clock.js';
import { backoffMillis } from '../backoff.js';
import type { StoreObserver } from '../store-observer.js';

/** The most settle calls under way at a time. They take Redis a millisecond, between checks. */
const MAX_UNDER_WAY = 16;
const FIRST_RETRY_MILLIS = 50;

/** A queue of which Redis has to be asked. */
export interface Unsettled {
  /** In Redis. */
  readonly name: string;
  /** Its turn has come. Resolves when the call has ended, and what comes of it is done. */
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
 * The line in which the queues of this replica stand for their settle calls. Mostly nobody is in it. After an outage
 * tens of thousands of keys are to be settled at once: then few calls are under way, and all that failed wait for one
 * timer.
 */
export class SettleLine {
  /** First come first. */
  readonly #line = new Set<Unsettled>();
  /** Those that have failed, or could not be asked about. */
  #failed = new Set<Unsettled>();
  #underWay = 0;
  #failures = 0;
  #cancelRetry: (() => void) | undefined;
  #told = 0;

  constructor(private readonly parts: SettleLineParts) {}

  /** Settles it when its turn has come, which may be at once. */
  join(queue: Unsettled): void {
    this.#failed.delete(queue);
    this.#line.add(queue);
    this.#next();
  }

  /** Settles it again later, since it has failed. */
  joinLater(queue: Unsettled): void {
    this.#failed.add(queue);
    this.#retryLater();
    this.#tell();
  }

  /** It need not be settled any more. */
  leave(queue: Unsettled): void {
    this.#line.delete(queue);
    this.#failed.delete(queue);
    if (this.#failed.size === 0) this.#endRetry();
    this.#tell();
  }

  /** The store can be asked again. */
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
