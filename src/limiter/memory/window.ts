/** A key is removed when this many windows have passed without a check. */
const IDLE_WINDOWS = 3;

/**
 * Fixed windows of one length, back to back from the first check of a key. `lua/lib/window.lua` has the same
 * rules.
 */
export class Window {
  constructor(
    private start: number,
    readonly millis: number,
  ) {}

  get end(): number {
    return this.start + this.millis;
  }

  /** When the key is removed if nobody checks it again. */
  get idleAt(): number {
    return this.end + IDLE_WINDOWS * this.millis;
  }

  /**
   * Moves on to the window that holds `now`, in milliseconds.
   * @returns whether that is another window
   */
  rollTo(now: number): boolean {
    if (now < this.end) return false;
    this.start = now - ((now - this.start) % this.millis);
    return true;
  }
}
