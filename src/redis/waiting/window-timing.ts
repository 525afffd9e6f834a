/** Redis says when a message was made in whole milliseconds, so two names of one moment differ by less than this. */
const SAME_MOMENT_MILLIS = 1;

/**
 * When there will be room for waiters, as far as a replica knows: at the end of the window, or sooner if
 * Redis says so. Times are a clock's milliseconds.
 */
export class WindowTiming {
  #roomAt = 0;
  /** The same by Redis's clock; undefined if that is not known. */
  #storeRoomAt: number | undefined;

  /**
   * @param windowMillis the length of a window
   * @param graceMillis how long a replica that is not the window leader waits for its wake
   * @param delayMillis how long after there is room a settle is due, by that time of Redis's clock
   */
  constructor(
    private readonly windowMillis: () => number,
    private readonly graceMillis: number,
    private readonly delayMillis: (storeRoomAt: number) => number,
  ) {}

  /**
   * Learns from a reply or a message of Redis, which is newer than all before. Each is late by its time on the way, so of
   * two that name the same moment the earlier end is the more exact. Once that has come, it was too early.
   * @param at when it was made, by Redis's clock
   */
  learn(now: number, at: number, millisToRoom: number): void {
    const storeRoomAt = at + millisToRoom;
    const isSameMoment =
      this.#storeRoomAt !== undefined &&
      Math.abs(storeRoomAt - this.#storeRoomAt) < SAME_MOMENT_MILLIS;
    const roomAt = now + millisToRoom;
    this.#roomAt = isSameMoment && now < this.#roomAt ? Math.min(roomAt, this.#roomAt) : roomAt;
    this.#storeRoomAt = storeRoomAt;
  }

  /** Learns from a message that may be older than what is known. If it is, a settle that is too early finds out. */
  learnUnordered(now: number, millisToRoom: number): void {
    const roomAt = now + millisToRoom;
    if (roomAt >= this.#roomAt && now < this.#roomAt) return;
    this.#roomAt = roomAt;
    this.#storeRoomAt = undefined;
  }

  /** No window is known. The next settle is due when a window would have passed. */
  forget(now: number): void {
    this.#roomAt = now + this.windowMillis();
    this.#storeRoomAt = undefined;
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
    const delay = this.#storeRoomAt === undefined ? 0 : this.delayMillis(this.#storeRoomAt);
    return this.#roomAt + delay + (isLeading ? 0 : this.graceMillis);
  }
}
