import type { Clock } from '../../common/clock.js';

/** How often idle keys and the ids of ended windows are freed. They stop counting on time also without this. */
const INTERVAL_MILLIS = 1000;
/** A sweep pauses after this many entries, so that requests come in between. */
const ENTRIES_BETWEEN_PAUSES = 10_000;
const PAUSE_MILLIS = 1;

/** Visits all entries of a map again and again, while there are any. A visit may remove its entry. */
export class Sweep<Entry> {
  #cancel: (() => void) | undefined;
  /** Where the sweep continues. A Map's iterator keeps its position while entries are added and removed. */
  #position: MapIterator<[string, Entry]> | undefined;

  /** @param visit gets the time of the clock, in whole milliseconds */
  constructor(
    private readonly entries: ReadonlyMap<string, Entry>,
    private readonly clock: Clock,
    private readonly visit: (key: string, entry: Entry, now: number) => void,
  ) {}

  /** To be called when an entry was added. */
  begin(): void {
    if (!this.#cancel) this.#continueAfter(INTERVAL_MILLIS);
  }

  end(): void {
    this.#cancel?.();
  }

  #continueAfter(millis: number): void {
    this.#cancel = this.clock.after(millis, () => {
      this.#continue();
    });
  }

  #continue(): void {
    const now = Math.floor(this.clock.now());
    this.#position ??= this.entries.entries();
    for (let looked = 0; looked < ENTRIES_BETWEEN_PAUSES; looked += 1) {
      const next = this.#position.next();
      if (next.done) {
        this.#position = undefined;
        break;
      }
      this.visit(...next.value, now);
    }
    if (this.#position) this.#continueAfter(PAUSE_MILLIS);
    else if (this.entries.size > 0) this.#continueAfter(INTERVAL_MILLIS);
    else this.#cancel = undefined;
  }
}
