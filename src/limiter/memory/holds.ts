import type { MemoryRoom } from './memory-room.js';

/** What a hold takes, measured. */
const BYTES_PER_HOLD = 300;

interface Hold {
  readonly hits: number;
  /** Its length. */
  readonly millis: number;
  readonly lapsesAt: number;
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
    this.#put(now, id, { hits, millis });
    return true;
  }

  release(id: string): boolean {
    const hold = this.#holds.get(id);
    if (!hold) return false;
    this.#remove(id, hold);
    return true;
  }

  /** Changes a hold, and renews it. @returns its length, or undefined if there is no such hold */
  renew(
    now: number,
    id: string,
    changes: { hits?: number | undefined; millis?: number | undefined },
  ): number | undefined {
    const hold = this.#holds.get(id);
    if (!hold) return undefined;
    const { hits = hold.hits, millis = hold.millis } = changes;
    this.#hits -= hold.hits;
    this.#put(now, id, { hits, millis });
    return millis;
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

  #put(now: number, id: string, { hits, millis }: Pick<Hold, 'hits' | 'millis'>): void {
    const lapsesAt = now + millis;
    this.#holds.set(id, { hits, millis, lapsesAt });
    this.#hits += hits;
    this.#firstLapse = Math.min(this.#firstLapse, lapsesAt);
  }

  #remove(id: string, { hits }: Hold): void {
    this.#holds.delete(id);
    this.#hits -= hits;
    this.room.giveBack(BYTES_PER_HOLD);
    if (this.#holds.size === 0) this.#firstLapse = Infinity;
  }
}
