import type { Queued, WaitingQueue } from './waiting-queue.js';

/** First come, first served. */
export class FifoQueue implements WaitingQueue {
  /** By their ids, in the order of arrival. Undefined until somebody waits, since most keys never have a waiter. */
  #waiters: Map<string, Queued> | undefined;
  /** Whether they are those of the queue of which this is a copy, which has taken none yet. */
  #isShared = false;

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
    this.#own.set(waiter.requestId, waiter);
  }

  remove(requestId: string): boolean {
    return this.size > 0 && this.#own.delete(requestId);
  }

  takeNext(approve: (waiter: Queued) => boolean): string[] {
    const taken: string[] = [];
    for (const [requestId, waiter] of this.#waiters ?? []) {
      if (!approve(waiter)) break;
      this.#own.delete(requestId);
      taken.push(requestId);
    }
    return taken;
  }

  first(most: number): Queued[] {
    const first: Queued[] = [];
    for (const waiter of this.#waiters?.values() ?? []) {
      if (first.length === most) break;
      first.push(waiter);
    }
    return first;
  }

  positionOf(requestId: string): number | undefined {
    if (!this.#waiters?.has(requestId)) return undefined;
    let position = 1;
    for (const id of this.#waiters.keys()) {
      if (id === requestId) break;
      position += 1;
    }
    return position;
  }

  /** The waiters, to be changed. */
  get #own(): Map<string, Queued> {
    if (this.#isShared || !this.#waiters) this.#waiters = new Map(this.#waiters);
    this.#isShared = false;
    return this.#waiters;
  }
}
