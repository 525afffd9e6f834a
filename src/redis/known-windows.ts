import { RecentValues } from '../common/recent-values.js';
import type { ThoughtOfKey } from './scripts/check-codec.js';

/** The most keys in each of the two generations. */
const KEPT_KEYS = 10_000;
/** A call takes so long to reach Redis where nothing is slow. */
const LEAST_MARGIN_MILLIS = 3;

/** What is thought of a key when a call is sent. */
export interface Thought {
  readonly key: string;
  /** `unknown` to begin with */
  thoughtOf: ThoughtOfKey;
  /** When the key's window ends, or ended, as far as is known; 0 to begin with. */
  windowEndsAt: number;
}

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

  /** Notes what is thought of a key for a call of now. One that was not plain is tried again in the next window. */
  thinkOf(thought: Thought, now: number): void {
    const end = this.#ends.get(thought.key);
    if (end === undefined) return;
    thought.windowEndsAt = Math.abs(end);
    const goesOn = now + this.#marginMillis < thought.windowEndsAt;
    if (!goesOn) thought.thoughtOf = 'plain';
    else if (end > 0) thought.thoughtOf = 'inWindow';
  }

  /**
   * Learns from the reply to a call.
   * @param thought as the call was sent
   * @param endsAt when the key's window ends
   * @param neededAllNames whether what was thought of the key was too little
   * @param now all times are by the clock of `thinkOf`
   */
  learn(thought: Readonly<Thought>, endsAt: number, neededAllNames: boolean, now: number): void {
    const { key } = thought;
    const seemsPlain = provedPlain(thought, neededAllNames, now) ?? (this.#ends.get(key) ?? 0) >= 0;
    this.#ends.set(key, seemsPlain ? endsAt : -endsAt);
  }
}

/** Whether the key proved plain; undefined where the call did not show it. */
function provedPlain(
  { thoughtOf, windowEndsAt }: Readonly<Thought>,
  neededAllNames: boolean,
  now: number,
): boolean | undefined {
  if (thoughtOf === 'unknown') return undefined;
  if (!neededAllNames) return true;
  // Its window may have ended on the way, which any key's does.
  const isOfWindow = thoughtOf === 'inWindow' && windowEndsAt <= now;
  return isOfWindow ? undefined : false;
}
