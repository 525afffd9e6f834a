import type { Clock } from '../common/clock.js';

/** Why something was ended before its client did its part. */
export type EndReason = 'too_many' | 'too_late';

interface AwaitedOptions<T> {
  readonly max: number;
  /** The bound of the bytes of all together; see {@link Awaited.grow}. */
  readonly maxBytes?: number;
  readonly millis: number;
  readonly clock: Clock;
  readonly end: (what: T, reason: EndReason) => void;
}

interface Entry {
  readonly since: number;
  bytes: number;
}

/**
 * Things that wait for their clients: at most `max` at a time, each for `millis`. Beyond a bound, the one that has
 * waited longest is ended. That is never one whose client does its part at once, so slow clients can't lock other
 * clients out.
 */
export class Awaited<T> {
  /** In the order in which they were added. */
  readonly #entries = new Map<T, Entry>();
  #bytes = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly options: AwaitedOptions<T>) {}

  add(what: T): void {
    const { max, millis, clock } = this.options;
    if (this.#entries.size >= max) this.#endFirst('too_many');
    this.#entries.set(what, { since: clock.now(), bytes: 0 });
    if (!this.#cancelTimer) this.#look(millis);
  }

  /** Adds bytes to what it takes. */
  grow(what: T, bytes: number): void {
    const entry = this.#entries.get(what);
    if (!entry) return;
    entry.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > (this.options.maxBytes ?? Infinity)) this.#endFirst('too_many');
  }

  /** Called when its client has done its part, or has disconnected. */
  delete(what: T): void {
    const entry = this.#entries.get(what);
    if (!entry) return;
    this.#bytes -= entry.bytes;
    this.#entries.delete(what);
  }

  /** Ends nothing from now on. */
  close(): void {
    this.#cancelTimer?.();
    this.#entries.clear();
  }

  /** One timer is enough for all, since the first one added is the first one due. */
  #look(afterMillis: number): void {
    const { millis, clock } = this.options;
    this.#cancelTimer = clock.after(afterMillis, () => {
      this.#cancelTimer = undefined;
      for (const { since } of this.#entries.values()) {
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
    const [first] = this.#entries.keys();
    if (first === undefined) return;
    this.delete(first);
    this.options.end(first, reason);
  }
}
