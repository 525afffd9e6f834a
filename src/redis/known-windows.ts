import { RecentValues } from '../common/recent-values.js';
import type { KeyAssumption } from './scripts/check-codec.js';

/** The most keys in each of the two generations. */
const KEPT_KEYS = 10_000;
/** A call takes so long to reach Redis if nothing is slow. */
const LEAST_MARGIN_MILLIS = 3;

/** A key, and what a call assumes of it. */
export interface AssumedKey {
  readonly key: string;
  /** `unknown` to begin with */
  assumption: KeyAssumption;
  /** When the key's window ends, or ended, as far as is known; 0 to begin with. */
  windowEndsAt: number;
}

/**
 * When the windows of recently checked keys end, as Redis said. Assumptions are hints: another replica's request may
 * have changed the key meanwhile.
 */
export class KnownWindows {
  /** For a key of which too much was assumed, the negative of that time. */
  readonly #ends = new RecentValues<number>(KEPT_KEYS);
  #marginMillis = LEAST_MARGIN_MILLIS;

  /** Learns how long calls take at present. An assumption has to hold when the next call reaches Redis. */
  tookMillis(millis: number): void {
    this.#marginMillis = Math.max(LEAST_MARGIN_MILLIS, millis);
  }

  /** Assumes what it can of a key that is checked now. After a wrong assumption it waits for the next window. */
  assume(assumed: AssumedKey, now: number): void {
    const end = this.#ends.get(assumed.key);
    if (end === undefined) return;
    assumed.windowEndsAt = Math.abs(end);
    const goesOn = now + this.#marginMillis < assumed.windowEndsAt;
    if (!goesOn) assumed.assumption = 'newWindow';
    else if (end > 0) assumed.assumption = 'inWindow';
  }

  /**
   * Learns from the reply to a call.
   * @param assumed as the call was sent
   * @param endsAt when the key's window ends
   * @param neededAllNames whether too much was assumed of the key
   * @param now all times are by the clock of `assume`
   */
  learn(assumed: Readonly<AssumedKey>, endsAt: number, neededAllNames: boolean, now: number): void {
    const { key } = assumed;
    const mayAssume = held(assumed, neededAllNames, now) ?? (this.#ends.get(key) ?? 0) >= 0;
    this.#ends.set(key, mayAssume ? endsAt : -endsAt);
  }
}

/** Whether the assumption held; undefined if the call did not show it. */
function held(
  { assumption, windowEndsAt }: Readonly<AssumedKey>,
  neededAllNames: boolean,
  now: number,
): boolean | undefined {
  if (assumption === 'unknown') return undefined;
  if (!neededAllNames) return true;
  // The window of any key may end while the call is on its way.
  const hasEnded = assumption === 'inWindow' && windowEndsAt <= now;
  return hasEnded ? undefined : false;
}
