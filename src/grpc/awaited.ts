import type { Clock } from '../common/clock.js';

/** Why something was ended before its client did its part. */
export type EndReason = 'too_many' | 'too_late';

/** Something that may be awaited, in one place at a time. */
export interface AwaitedItem {
  /** When it was added. */
  since: number;
  /** What it takes; see {@link Awaited.grow}. */
  bytes: number;
}

interface AwaitedOptions<T> {
  readonly max: number;
  /** The bound of the bytes of all together; see {@link Awaited.grow}. */
  readonly maxBytes?: number;
  readonly millis: number;
  readonly clock: Clock;
  readonly end: (what: T, reason: EndReason) => void;
}

/**
 * Things that wait for their clients: at most `max` at a time, each for `millis`. Beyond a bound, the one that has
 * waited longest is ended. That is never one whose client does its part at once, so slow clients can't lock other
 * clients out.
 */
export class Awaited<T extends AwaitedItem> {
  /** In the order in which they were added. */
  readonly #items = new Set<T>();
  #bytes = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly options: AwaitedOptions<T>) {}

  add(what: T): void {
    const { max, millis, clock } = this.options;
    if (this.#items.size >= max) this.#endFirst('too_many');
    this.#items.add(what);
    what.since = clock.now();
    what.bytes = 0;
    if (!this.#cancelTimer) this.#look(millis);
  }

  /** Adds bytes to what it takes. */
  grow(what: T, bytes: number): void {
    if (!this.#items.has(what)) return;
    what.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > (this.options.maxBytes ?? Infinity)) this.#endFirst('too_many');
  }

  /** Called when its client has done its part, or has disconnected. */
  delete(what: T): void {
    if (this.#items.delete(what)) this.#bytes -= what.bytes;
  }

  close(): void {
    this.#cancelTimer?.();
    this.#items.clear();
  }

  /** One timer is enough for all, since the first one added is the first one due. */
  #look(afterMillis: number): void {
    const { millis, clock } = this.options;
    this.#cancelTimer = clock.after(afterMillis, () => {
      this.#cancelTimer = undefined;
      for (const { since } of this.#items) {
        const left = since + millis - clock.now();
        if (left > 0) {
          this.#look(left);
          return;
        }
        this.#endFirst('too_late');
      }
    });
  }

  #endFirst(reason: EndReason): void {
    const [first] = this.#items;
    if (first === undefined) return;
    this.delete(first);
    this.options.end(first, reason);
  }
}
