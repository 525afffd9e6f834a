import { RecentValues } from '../../common/collections.js';
import type { KeyAssumption } from '../scripts/check-codec.js';

/** The most keys in each of the two generations. */
const KEPT_KEYS = 10_000;
/** A call takes so long to reach Redis if nothing is slow. */
const LEAST_MARGIN_MILLIS = 3;

/** The window of a key, as Redis said. */
interface KeyWindow {
  endsAt: number;
  /** False in a window in which an assumption about the key was wrong. */
  mayAssume: boolean;
}

/** A key, and what a call assumes of it. */
export interface AssumedKey {
  readonly key: string;
  /** `unknown` to begin with */
  assumption: KeyAssumption;
  /** When the key's window ends, or ended, as far as is known; 0 to begin with. */
  windowEndsAt: number;
  /** Undefined to begin with. */
  known: KeyWindow | undefined;
}

/**
 * Remembers when the windows of recently checked keys end. An assumption may be wrong: another replica's request may have
 * changed the key in the meantime.
 */
export class KnownWindows {
  readonly #windows = new RecentValues<KeyWindow>(KEPT_KEYS);
  #marginMillis = LEAST_MARGIN_MILLIS;

  /** Learns how long calls take at present. An assumption has to be right when the next call reaches Redis. */
  tookMillis(millis: number): void {
    this.#marginMillis = Math.max(LEAST_MARGIN_MILLIS, millis);
  }

  /** Assumes what it can of a key that is checked now. After a wrong assumption it waits for the next window. */
  assume(assumed: AssumedKey, now: number): void {
    const known = this.#windows.get(assumed.key);
    if (!known) return;
    assumed.known = known;
    assumed.windowEndsAt = known.endsAt;
    if (now + this.#marginMillis >= known.endsAt) assumed.assumption = 'newWindow';
    else if (known.mayAssume) assumed.assumption = 'inWindow';
  }

  /** Nothing can be assumed of a key. */
  forget(key: string): void {
    this.#windows.delete(key);
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
    const known = assumed.known ?? this.#windows.get(key);
    const mayAssume = wasRight(assumed, neededAllNames, now) ?? known?.mayAssume ?? true;
    if (known) {
      known.endsAt = endsAt;
      known.mayAssume = mayAssume;
    } else this.#windows.set(key, { endsAt, mayAssume });
  }
}

/** Whether the assumption was right; undefined if the call did not show it. */
function wasRight(
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
