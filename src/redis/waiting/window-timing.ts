/**
 * When there will be room for those who wait, as far as a replica knows: at the end of the window, or
 * sooner where Redis says so. Times are a clock's milliseconds.
 */
export class WindowTiming {
  #roomAt = 0;

  /**
   * @param windowMillis the length of a window
   * @param graceMillis how long a replica that is not the window leader waits for its wake
   */
  constructor(
    private readonly windowMillis: number,
    private readonly graceMillis: number,
  ) {}

  /**
   * Takes in what Redis said. It is heard late, by the way from there to here, so the earliest that was
   * said of a window is the nearest; what is said of a later one holds from then on.
   */
  learn(now: number, millisToRoom: number): void {
    const roomAt = now + millisToRoom;
    const isOfLaterWindow = roomAt > this.#roomAt + this.windowMillis / 2;
    if (roomAt < this.#roomAt || isOfLaterWindow || now >= this.#roomAt) this.#roomAt = roomAt;
  }

  /** Nobody knows of a window: it is looked for again when one would have passed. */
  forget(now: number): void {
    this.#roomAt = now + this.windowMillis;
  }

  /** Whole milliseconds until there is room; 0 where that time has come. */
  millisToRoom(now: number): number {
    return Math.max(0, Math.round(this.#roomAt - now));
  }

  /** When to settle if no wake has come by then. */
  dueAt(isLeading: boolean): number {
    return isLeading ? this.#roomAt : this.#roomAt + this.graceMillis;
  }
}
