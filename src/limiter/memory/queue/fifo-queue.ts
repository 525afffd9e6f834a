import type { Queued, WaitingQueue } from './waiting-queue.js';

/** First come, first served. */
export class FifoQueue implements WaitingQueue {
  /** By their ids, in the order of arrival. Undefined until somebody waits, since most keys never have a waiter. */
  #waiters: Map<string, Queued> | undefined;

  get size(): number {
    return this.#waiters?.size ?? 0;
  }

  copy(): FifoQueue {
    const copy = new FifoQueue();
    if (this.#waiters) copy.#waiters = new Map(this.#waiters);
    return copy;
  }

  add(waiter: Queued): void {
    this.#waiters ??= new Map();
    this.#waiters.set(waiter.requestId, waiter);
  }

  remove(requestId: string): boolean {
    return this.#waiters?.delete(requestId) ?? false;
  }

  takeNext(approve: (waiter: Queued) => boolean): string[] {
    const taken: string[] = [];
    for (const [requestId, waiter] of this.#waiters ?? []) {
      if (!approve(waiter)) break;
      this.#waiters?.delete(requestId);
      taken.push(requestId);
    }
    return taken;
  }

  first(most: number): Queued[] {
    return [...(this.#waiters?.values() ?? [])].slice(0, most);
  }
}
