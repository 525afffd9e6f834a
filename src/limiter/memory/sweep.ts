import type { Clock } from '../../common/clock.js';

const INTERVAL_MILLIS = 1000;
/** A sweep pauses after this many keys, so that requests come in between. */
const KEYS_BETWEEN_PAUSES = 10_000;
const PAUSE_MILLIS = 1;

/** Visits all keys from time to time, as long as there are any. */
export class Sweep<Entry> {
  #stop: (() => void) | undefined;
  /** Where it continues. A Map's iterator keeps its position while entries are added and removed. */
  #position: MapIterator<[string, Entry]> | undefined;

  /** @param visit may remove the key */
  constructor(
    private readonly entries: Map<string, Entry>,
    private readonly clock: Clock,
    private readonly visit: (key: string, entry: Entry) => void,
  ) {}

  /** To be called when a key was added. */
  start(): void {
    if (!this.#stop) this.#continueAfter(INTERVAL_MILLIS);
  }

  stop(): void {
    this.#stop?.();
  }

  #continueAfter(millis: number): void {
    this.#stop = this.clock.after(millis, () => {
      this.#sweep();
    });
  }

  #sweep(): void {
    this.#position ??= this.entries.entries();
    for (let visited = 0; visited < KEYS_BETWEEN_PAUSES; visited += 1) {
      const next = this.#position.next();
      if (next.done) {
        this.#position = undefined;
        break;
      }
      this.visit(...next.value);
    }
    if (this.#position) this.#continueAfter(PAUSE_MILLIS);
    else if (this.entries.size > 0) this.#continueAfter(INTERVAL_MILLIS);
    else this.#stop = undefined;
  }
}
