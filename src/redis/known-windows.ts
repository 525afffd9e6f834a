/** The most keys in each of two generations; the older one is forgotten when the younger is full. */
const KEPT_KEYS = 10_000;
/** A call takes so long to reach Redis where nothing is slow. */
const MARGIN_MILLIS = 3;

/**
 * Until when the windows of the keys asked for lately go on, as Redis said. Only hints come of it: another
 * replica's request may have changed the key meanwhile.
 */
export class KnownWindows {
  #young = new Map<string, number>();
  #old = new Map<string, number>();

  /** @param endsAt by the same clock as `goesOn` */
  learn(key: string, endsAt: number): void {
    if (this.#young.size >= KEPT_KEYS && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, endsAt);
  }

  /** Whether the window of a key goes on, for all that is known, when a call of now reaches Redis. */
  goesOn(key: string, now: number): boolean {
    const endsAt = this.#young.get(key) ?? this.#old.get(key);
    return endsAt !== undefined && now + MARGIN_MILLIS < endsAt;
  }
}
