import type { MemoryRoom } from './memory-room.js';

/** What a hold takes, measured. */
const BYTES_PER_HOLD = 300;

interface Hold {
  readonly hits: number;
  /** Its length. */
  readonly millis: number;
  readonly lapsesAt: number;
}

/** The changes of a hold. An undefined one changes nothing. */
interface HoldChanges {
  readonly hits?: number | undefined;
  readonly millis?: number | undefined;
  /** The longest hold that is renewed. */
  readonly maxMillis?: number | undefined;
}

/** The approvals of a key that are held. `lua/lib/holds.lua` has the same rules. Times are milliseconds of a clock. */
export class Holds {
  readonly #holds = new Map<string, Hold>();
  #hits = 0;
  #firstLapse = Infinity;

  constructor(
    private readonly max: number,
    private readonly room: MemoryRoom,
  ) {}

  /** The hits of all held approvals. */
  get hits(): number {
    return this.#hits;
  }

  /** How many approvals are held. */
  get size(): number {
    return this.#holds.size;
  }

  get isFull(): boolean {
    return this.#holds.size >= this.max;
  }

  /** No hold lapses before this time. */
  get firstLapse(): number {
    return this.#firstLapse;
  }

  /** @returns false if there is no memory for it, so that nothing has changed */
  add(now: number, id: string, hits: number, millis: number): boolean {
    if (!this.room.take(BYTES_PER_HOLD)) return false;
    this.#put(id, { hits, millis, lapsesAt: now + millis });
    return true;
  }

  release(id: string): boolean {
    const hold = this.#holds.get(id);
    if (!hold) return false;
    this.#remove(id, hold);
    return true;
  }

  /** The hits of a hold; undefined if there is no such hold. */
  hitsOf(id: string): number | undefined {
    return this.#holds.get(id)?.hits;
  }

  /**
   * Changes a hold, and renews it. If it is longer than `maxMillis`, it is not renewed, and only its hits change.
   * @returns until it lapses; undefined if there is no such hold; `too_long` if there is nothing to change
   */
  renew(now: number, id: string, changes: HoldChanges): number | 'too_long' | undefined {
    const hold = this.#holds.get(id);
    if (!hold) return undefined;
    const { hits = hold.hits, millis = hold.millis, maxMillis = Infinity } = changes;
    const isRenewed = millis <= maxMillis;
    if (!isRenewed && changes.hits === undefined) return 'too_long';
    const lapsesAt = isRenewed ? now + millis : hold.lapsesAt;
    this.#hits -= hold.hits;
    this.#put(id, { hits, millis, lapsesAt });
    return lapsesAt - now;
  }

  /** Ends the holds that have lapsed. */
  endLapsed(now: number): void {
    if (now < this.#firstLapse) return;
    this.#firstLapse = Infinity;
    for (const [id, hold] of this.#holds) {
      if (hold.lapsesAt <= now) this.#remove(id, hold);
      else this.#firstLapse = Math.min(this.#firstLapse, hold.lapsesAt);
    }
  }

  /** The holds that have not lapsed; undefined if there are none. */
  heldAt(now: number): { readonly hits: number; readonly size: number } | undefined {
    const live = [...this.#holds.values()].filter(({ lapsesAt }) => lapsesAt > now);
    if (live.length === 0) return undefined;
    return { hits: live.reduce((sum, { hits }) => sum + hits, 0), size: live.length };
  }

  /** Removes all, and gives their memory back. */
  clear(): void {
    for (const [id, hold] of this.#holds) this.#remove(id, hold);
  }

  #put(id: string, hold: Hold): void {
    this.#holds.set(id, hold);
    this.#hits += hold.hits;
    this.#firstLapse = Math.min(this.#firstLapse, hold.lapsesAt);
  }

  #remove(id: string, { hits }: Hold): void {
    this.#holds.delete(id);
    this.#hits -= hits;
    this.room.giveBack(BYTES_PER_HOLD);
    if (this.#holds.size === 0) this.#firstLapse = Infinity;
  }
}
