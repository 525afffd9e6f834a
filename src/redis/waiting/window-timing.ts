/**
 * When there will be room for waiters, as far as a replica knows: at the end of the window, or sooner if
 * Redis says so. Times are a clock's milliseconds.
 */
export class WindowTiming {
  #roomAt = 0;

  /**
   * @param windowMillis the length of a window
   * @param graceMillis how long a replica that is not the window leader waits for its wake
   */
  constructor(
    private readonly windowMillis: () => number,
    private readonly graceMillis: number,
  ) {}

  /**
   * Learns from a reply or a message of Redis. Each is late by its time on the way, so the earliest end that they give
   * for a window is the most exact. The end of a later window replaces it.
   */
  learn(now: number, millisToRoom: number): void {
    const roomAt = now + millisToRoom;
    const isOfLaterWindow = this.isOfLaterWindow(now, millisToRoom);
    if (roomAt < this.#roomAt || isOfLaterWindow || now >= this.#roomAt) this.#roomAt = roomAt;
  }

  /** Whether a reply gives the end of a later window than the one that is known. */
  isOfLaterWindow(now: number, millisToRoom: number): boolean {
    return now + millisToRoom > this.#roomAt + this.windowMillis() / 2;
  }

  /** No window is known. The next settle is due when a window would have passed. */
  forget(now: number): void {
    this.#roomAt = now + this.windowMillis();
  }

  /** When there will be room, as far as is known; a time in the past if there is room now. */
  get roomAt(): number {
    return this.#roomAt;
  }

  /** Whole milliseconds until there is room; below 0 after that time. */
  millisToRoom(now: number): number {
    return Math.round(this.#roomAt - now);
  }

  /** When to settle if no wake has come by then. */
  dueAt(isLeading: boolean): number {
    return isLeading ? this.#roomAt : this.#roomAt + this.graceMillis;
  }
}
