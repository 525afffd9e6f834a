import { RecentValues } from '../common/recent-values.js';
import type { ThoughtOfKey } from './scripts/check-codec.js';

/** The most keys in each of the two generations. */
const KEPT_KEYS = 10_000;
/** A call takes so long to reach Redis where nothing is slow. */
const LEAST_MARGIN_MILLIS = 3;

/**
 * Until when the windows of the keys asked for lately go on, as Redis said. Only hints come of it: another
 * replica's request may have changed the key meanwhile.
 */
export class KnownWindows {
  /** Of a key that proved not to be plain, the negative of that time. */
  readonly #ends = new RecentValues<number>(KEPT_KEYS);
  #marginMillis = LEAST_MARGIN_MILLIS;

  /** A call takes so long by now. What is thought of a key has to hold when the next one reaches Redis. */
  tookMillis(millis: number): void {
    this.#marginMillis = Math.max(LEAST_MARGIN_MILLIS, millis);
  }

  /**
   * @param endsAt when the key's window ends, by the same clock as `thoughtOf`
   * @param isPlain whether the key proved plain; undefined where the call did not show it
   */
  learn(key: string, endsAt: number, isPlain: boolean | undefined): void {
    const seemsPlain = isPlain ?? (this.#ends.get(key) ?? 0) >= 0;
    this.#ends.set(key, seemsPlain ? endsAt : -endsAt);
  }

  /** What is thought of a key for a call of now. One that was not plain is tried again in the next window. */
  thoughtOf(key: string, now: number): ThoughtOfKey {
    const endsAt = this.#ends.get(key);
    if (endsAt === undefined) return 'unknown';
    const goesOn = now + this.#marginMillis < Math.abs(endsAt);
    if (!goesOn) return 'plain';
    return endsAt > 0 ? 'inWindow' : 'unknown';
  }

  /** When the key's window ends, or ended, as far as is known. */
  endOf(key: string): number {
    return Math.abs(this.#ends.get(key) ?? 0);
  }
}
