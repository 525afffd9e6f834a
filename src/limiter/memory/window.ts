/** A key is removed when this many windows have passed without a check. */
const IDLE_WINDOWS = 3;

/**
 * Fixed windows, back to back from the first check of a key. `lua/lib/window.lua` has the same
 * rules.
 */
export class Window {
  constructor(
    private begin: number,
    private length: number,
  ) {}

  /** When the current window began. */
  get start(): number {
    return this.begin;
  }

  /** The length of the current window, in milliseconds. */
  get millis(): number {
    return this.length;
  }

  get end(): number {
    return this.begin + this.length;
  }

  /** Until the window that holds `now` ends, also if `rollTo` was not called for it. */
  millisLeft(now: number): number {
    return this.length - (Math.max(0, now - this.begin) % this.length);
  }

  /** When the key is removed if nobody checks it again. */
  get idleAt(): number {
    return this.end + IDLE_WINDOWS * this.length;
  }

  /**
   * Moves on to the window that holds `now`, in milliseconds. A new length counts from the last boundary before `now`.
   * @returns whether that is another window
   */
  rollTo(now: number, millis: number): boolean {
    if (now < this.end) return false;
    this.begin = now - ((now - this.begin) % this.length);
    if (millis !== this.length) {
      this.length = millis;
      this.begin = now - ((now - this.begin) % millis);
    }
    return true;
  }
}
