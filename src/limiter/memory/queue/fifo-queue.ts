import type { Queued, WaitingQueue } from './waiting-queue.js';

/** As many positions are exact: those behind them count waiters that have left the queue. */
const EXACT_POSITIONS = 1000;

interface Entry {
  readonly waiter: Queued;
  /** Grows with each waiter. */
  readonly number: number;
}

/** First come, first served. */
export class FifoQueue implements WaitingQueue {
  /** By their ids, in the order of arrival. Undefined until somebody waits, since most keys never have a waiter. */
  #waiters: Map<string, Entry> | undefined;
  /** Whether they are those of the queue of which this is a copy, which has taken none yet. */
  #isShared = false;
  #lastNumber = 0;

  get size(): number {
    return this.#waiters?.size ?? 0;
  }

  copy(): FifoQueue {
    const copy = new FifoQueue();
    copy.#waiters = this.#waiters;
    copy.#isShared = true;
    return copy;
  }

  add(waiter: Queued): void {
    this.#lastNumber += 1;
    this.#own.set(waiter.requestId, { waiter, number: this.#lastNumber });
  }

  find(requestId: string): Queued | undefined {
    return this.#waiters?.get(requestId)?.waiter;
  }

  replace(waiter: Queued): void {
    const entry = this.#waiters?.get(waiter.requestId);
    if (entry) this.#own.set(waiter.requestId, { ...entry, waiter });
  }

  positionOf(requestId: string): number {
    const wanted = this.#waiters?.get(requestId);
    let position = 0;
    for (const entry of this.#waiters?.values() ?? []) {
      position += 1;
      if (entry === wanted) break;
      if (wanted && position === EXACT_POSITIONS) return position + wanted.number - entry.number;
    }
    return position;
  }

  remove(requestId: string): boolean {
    return this.size > 0 && this.#own.delete(requestId);
  }

  takeNext(approve: (waiter: Queued) => boolean): string[] {
    const taken: string[] = [];
    for (const [requestId, { waiter }] of this.#waiters ?? []) {
      if (!approve(waiter)) break;
      this.#own.delete(requestId);
      taken.push(requestId);
    }
    return taken;
  }

  first(most: number): Queued[] {
    const first: Queued[] = [];
    for (const { waiter } of this.#waiters?.values() ?? []) {
      if (first.length === most) break;
      first.push(waiter);
    }
    return first;
  }

  /** The waiters, to be changed. */
  get #own(): Map<string, Entry> {
    if (this.#isShared || !this.#waiters) this.#waiters = new Map(this.#waiters);
    this.#isShared = false;
    return this.#waiters;
  }
}
