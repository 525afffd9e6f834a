import type { ThoughtOfKey } from './scripts/check-codec.js';

/** The most keys in each of two generations; the older one is forgotten when the younger is full. */
const KEPT_KEYS = 10_000;
/** A call takes so long to reach Redis where nothing is slow. */
const MARGIN_MILLIS = 3;

/**
 * Until when the windows of the keys asked for lately go on, as Redis said. Only hints come of it: another
 * replica's request may have changed the key meanwhile.
 */
export class KnownWindows {
  /** Of a key that proved not to be plain, the negative of that time. */
  #young = new Map<string, number>();
  #old = new Map<string, number>();

  /**
   * @param endsAt when the key's window ends, by the same clock as `thoughtOf`
   * @param isPlain whether the key proved plain; undefined where the call did not show it
   */
  learn(key: string, endsAt: number, isPlain: boolean | undefined): void {
    if (this.#young.size >= KEPT_KEYS && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, (isPlain ?? this.#seemsPlain(key)) ? endsAt : -endsAt);
  }

  /** What is thought of a key for a call of now. One that was not plain is tried again in the next window. */
  thoughtOf(key: string, now: number): ThoughtOfKey {
    const endsAt = this.#find(key);
    if (endsAt === undefined) return 'unknown';
    const goesOn = now + MARGIN_MILLIS < Math.abs(endsAt);
    if (!goesOn) return 'plain';
    return endsAt > 0 ? 'inWindow' : 'unknown';
  }

  #seemsPlain(key: string): boolean {
    return (this.#find(key) ?? 0) >= 0;
  }

  #find(key: string): number | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }
}
