import {
  type FurtherLimit,
  type FurtherQuota,
  type FurtherState,
  takenOf,
} from '../further-limits.js';
import { ApprovedIds } from './approved-ids.js';
import type { Holds } from './holds.js';
import type { MemoryRoom } from './memory-room.js';
import { moreRoomAt, unlessPaused } from './room-at.js';
import { Window } from './window.js';

/**
 * The current window of a further limit, and the approvals in it. `lua/lib/further.lua` has the same rules. The held
 * approvals of the key, which count in addition unless the limit keeps what is released, are those of `holds`.
 */
export class FurtherWindow {
  readonly #window: Window;
  /** Held ids are among them only if the limit keeps what is released. */
  readonly #ids: ApprovedIds;

  constructor(
    now: number,
    private limit: FurtherLimit,
    private readonly maxIds: number,
    room: MemoryRoom,
  ) {
    this.#window = new Window(now, limit.windowMillis);
    this.#ids = new ApprovedIds(room);
  }

  get start(): number {
    return this.#window.start;
  }

  get millis(): number {
    return this.#window.millis;
  }

  get end(): number {
    return this.#window.end;
  }

  /** What the approvals take. */
  taken(holds: Holds | undefined): number {
    return this.#ids.hits + this.#held(holds);
  }

  /** When a full limit may have room next. */
  roomAt(holds: Holds | undefined): number {
    const { keepsReleased, maximum } = this.limit;
    const firstLapse = keepsReleased ? Infinity : (holds?.firstLapse ?? Infinity);
    return moreRoomAt({ windowEnd: this.end, firstLapse, held: this.#held(holds), maximum });
  }

  /** Whether an approval with so many hits fits. */
  fits(hits: number, holds: Holds | undefined): boolean {
    return this.taken(holds) + takenOf(this.limit, hits) <= this.limit.maximum;
  }

  /** Whether an approval with so many hits takes more than the maximum. */
  isBelow(hits: number): boolean {
    return takenOf(this.limit, hits) > this.limit.maximum;
  }

  /** Whether nothing is approved. */
  isUnused(holds: Holds | undefined): boolean {
    return this.taken(holds) === 0;
  }

  /** Whether no more ids are kept. */
  isFull(isHeld: boolean): boolean {
    return this.#keepsIdOf(isHeld) && this.#ids.size >= this.maxIds;
  }

  /** @returns false if there is no memory for it, so that nothing has changed */
  add(id: string, hits: number, isHeld: boolean): boolean {
    if (!this.#keepsIdOf(isHeld)) return true;
    return this.#ids.add(id, takenOf(this.limit, hits));
  }

  /**
   * Gives back what an approval takes.
   * @param isUnused nobody has got the approval, so that it counts in no limit
   */
  release(id: string, isUnused: boolean): boolean {
    return (isUnused || !this.limit.keepsReleased) && this.#ids.release(id);
  }

  /** @returns what an approval takes as one of the window; undefined if it is not among them */
  takenBy(id: string): number | undefined {
    return this.#ids.hitsOf(id);
  }

  /** @returns false if there is no memory for other hits of an approval */
  makeRoom(id: string, hits: number): boolean {
    return this.#ids.makeRoom(id, takenOf(this.limit, hits));
  }

  /** @returns whether the approval counts here, other than as a held one */
  amend(id: string, hits: number): boolean {
    return this.#ids.amend(id, takenOf(this.limit, hits));
  }

  /**
   * Takes other rules. The approvals of the window stay in it. If it is over by a shorter length, they count in the window
   * that is current by that length: ids have no times, and some were approved in it.
   */
  change(now: number, limit: FurtherLimit): void {
    this.limit = limit;
    this.#window.change(now, limit.windowMillis);
  }

  /** Whether other rules change its maximum or its window at most. */
  counts({ name, counts, keepsReleased }: FurtherLimit): boolean {
    const { limit } = this;
    return limit.name === name && limit.counts === counts && limit.keepsReleased === keepsReleased;
  }

  roll(now: number): void {
    if (this.#window.rollTo(now, this.limit.windowMillis)) this.#ids.clear();
  }

  /** Gives back the memory of a window that has ended, or of all. */
  clear(): void {
    this.#ids.clear();
  }

  state(now: number, holds: Holds | undefined): FurtherState {
    const windowHasEnded = now >= this.end;
    const held = this.limit.keepsReleased ? 0 : this.#takenBy(holds?.heldAt(now));
    return {
      ...this.limit,
      approved: held + (windowHasEnded ? 0 : this.#ids.hits),
      millisToWindowEnd: this.#window.millisLeft(now),
    };
  }

  /** @param pausedUntil -Infinity if the key is not paused */
  quota(now: number, holds: Holds | undefined, pausedUntil: number): FurtherQuota {
    const left = Math.max(0, this.limit.maximum - this.taken(holds));
    const roomAt = unlessPaused(this.roomAt(holds), left === 0, pausedUntil);
    const remaining = pausedUntil > -Infinity ? 0 : left;
    return { ...this.limit, remaining, resetMillis: roomAt - now };
  }

  /** The least time until a check with so many hits would have its turn after so many others, each of one hit. */
  millisToTurn(now: number, before: number, hits: number, holds: Holds | undefined): number {
    const { maximum } = this.limit;
    const room = Math.max(0, maximum - this.taken(holds));
    const missing = before + Math.min(takenOf(this.limit, hits), maximum) - room;
    return missing <= 0 ? 0 : this.#window.millisToMissing(now, missing, maximum, this.millis);
  }

  /** The others count while they are held. */
  #keepsIdOf(isHeld: boolean): boolean {
    return !isHeld || this.limit.keepsReleased;
  }

  #held(holds: Holds | undefined): number {
    return this.limit.keepsReleased ? 0 : this.#takenBy(holds);
  }

  #takenBy(held: { readonly hits: number; readonly size: number } | undefined): number {
    if (!held) return 0;
    return this.limit.counts === 'hits' ? held.hits : held.size;
  }
}
