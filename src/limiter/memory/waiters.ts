import type { RequestIdConflict } from '../errors.js';
import type { CheckRequest } from '../limiter.js';
import type { Waiter } from '../waiter.js';

/**
 * The requests that wait in this process, by a key's entry and their request ids. The place of a waiter ends when it is
 * removed.
 */
export class Waiters<Entry> {
  readonly #ofEntries = new Map<Entry, Map<string, Waiter>>();
  #size = 0;

  /** @param max the most that may wait */
  constructor(private readonly max: number) {}

  get size(): number {
    return this.#size;
  }

  /** The entries with waiters. */
  get entries(): Iterable<Entry> {
    return this.#ofEntries.keys();
  }

  /** Says in a check that can wait whether it has a place. One that takes a place over needs no further one. */
  withPlace(request: CheckRequest, entry: Entry, requestId: string): CheckRequest {
    const { noPlace = false } = request;
    const isThere = this.#find(entry, requestId) !== undefined;
    const lacksPlace = (noPlace || this.#size >= this.max) && !isThere;
    return lacksPlace === noPlace ? request : { ...request, noPlace: lacksPlace };
  }

  /** Adds a waiter whose request id no other waiter of the entry has. */
  add(entry: Entry, waiter: Waiter): void {
    const ofEntry = this.#ofEntries.get(entry) ?? new Map<string, Waiter>();
    this.#ofEntries.set(entry, ofEntry.set(waiter.requestId, waiter));
    this.#size += 1;
  }

  /** Removes the waiter with a request id. @returns undefined if there is none */
  take(entry: Entry, requestId: string): Waiter | undefined {
    const ofEntry = this.#ofEntries.get(entry);
    const waiter = ofEntry?.get(requestId);
    if (!ofEntry || !waiter) return undefined;
    ofEntry.delete(requestId);
    if (ofEntry.size === 0) this.#ofEntries.delete(entry);
    this.#size -= 1;
    waiter.endPlace();
    return waiter;
  }

  /** @returns false if it was removed before; another waiter may have its request id now */
  remove(entry: Entry, waiter: Waiter): boolean {
    if (this.#find(entry, waiter.requestId) !== waiter) return false;
    this.take(entry, waiter.requestId);
    return true;
  }

  /** Fails the check that waits with a request id, if there is one. */
  fail(entry: Entry, requestId: string, conflict: RequestIdConflict): void {
    this.take(entry, requestId)?.conflict(conflict);
  }

  /** Removes all, and fails each with an error of its own. */
  failAll(createError: () => Error): void {
    const all = [...this.#ofEntries.values()].flatMap((ofEntry) => [...ofEntry.values()]);
    this.#ofEntries.clear();
    this.#size = 0;
    for (const waiter of all) {
      waiter.endPlace();
      waiter.fail(createError());
    }
  }

  /** The waiters whose checks have ended, since their places are kept. */
  keptAlone(): [Entry, Waiter][] {
    return [...this.#ofEntries].flatMap(([entry, ofEntry]) =>
      [...ofEntry.values()]
        .filter(({ decided }) => decided)
        .map((waiter): [Entry, Waiter] => [entry, waiter]),
    );
  }

  #find(entry: Entry, requestId: string): Waiter | undefined {
    return this.#ofEntries.get(entry)?.get(requestId);
  }
}
