import { type MemoryBudget, UNBOUNDED_BUDGET } from '../memory-budget.js';
import { parseUuid, UUID_WORDS } from '../uuid.js';

/** For the hits of an id. */
const HITS_WORDS = 1;
/** V8 keeps arrays of up to 64 bytes on its heap, where it allocates them in a tenth of the time. */
const FIRST_CAPACITY = 4;
const GROWTH = 1.5;
/** With a fuller table, the search for a free slot would take long. */
const MAX_LOAD = 0.8;

const NOTHING = new Uint32Array(0);
/** The id of the current search. */
const wanted = new Uint32Array(UUID_WORDS);

/**
 * The ids of the approvals of a window, in a hash table with open addressing: an id has the first free slot after the
 * one that its first number gives. An id takes 20 to 30 bytes, in a set of texts it would take 150.
 */
export class ApprovedIds {
  /** A slot for each id: its numbers, then its hits as soon as any id of the window has more than one. */
  #table = NOTHING;
  #capacity = 0;
  #words = UUID_WORDS;
  #size = 0;
  #hits = 0;
  /** Whether the table also belongs to the original. */
  #isShared = false;

  constructor(private readonly budget: MemoryBudget) {}

  get size(): number {
    return this.#size;
  }

  /** Whether an id of the window has, or had, other hits than one. */
  get hasHits(): boolean {
    return this.#words > UUID_WORDS;
  }

  /** The hits of all approvals that are not released. */
  get hits(): number {
    return this.#hits;
  }

  /** A copy to which ids may be added. Until then it shares the memory of this one. */
  copy(): ApprovedIds {
    const copy = new ApprovedIds(UNBOUNDED_BUDGET);
    copy.#table = this.#table;
    copy.#capacity = this.#capacity;
    copy.#words = this.#words;
    copy.#size = this.#size;
    copy.#hits = this.#hits;
    copy.#isShared = true;
    return copy;
  }

  /**
   * @param id a UUID of version 4 that was not added before
   * @returns false if there is no memory for it, so that nothing has changed
   */
  add(id: string, hits: number): boolean {
    const words = hits > 1 ? UUID_WORDS + HITS_WORDS : this.#words;
    const isFull = this.#size + 1 > this.#capacity * MAX_LOAD;
    const capacity = isFull
      ? Math.max(FIRST_CAPACITY, Math.ceil(this.#capacity * GROWTH))
      : this.#capacity;
    const isRebuilt = isFull || words !== this.#words || this.#isShared;
    if (isRebuilt && !this.#rebuild(capacity, words)) return false;
    if (!parseUuid(id, wanted)) throw new Error(`no UUID: ${id}`);
    this.#put(hits);
    this.#size += 1;
    this.#hits += hits;
    return true;
  }

  /**
   * Releases all hits of an id.
   * @param id any text
   * @returns whether it was there
   */
  release(id: string): boolean {
    const index = this.#find(id);
    if (index === undefined) return false;
    this.#hits -= this.#hitsAt(index);
    this.#remove(index);
    return true;
  }

  /** @returns the hits of an id, which may be any text; undefined if it is not there */
  hitsOf(id: string): number | undefined {
    const index = this.#find(id);
    return index === undefined ? undefined : this.#hitsAt(index);
  }

  /**
   * Takes memory for other hits of an id, if it is there.
   * @param id any text
   * @returns false if there is no memory for them, so that nothing has changed
   */
  reserve(id: string, hits: number): boolean {
    const words = hits === 1 ? this.#words : UUID_WORDS + HITS_WORDS;
    if (words === this.#words || this.#find(id) === undefined) return true;
    return this.#rebuild(this.#capacity, words);
  }

  /**
   * Gives an id other hits, for which `reserve` has taken memory.
   * @param id any text
   * @returns whether it is there
   */
  amend(id: string, hits: number): boolean {
    const index = this.#find(id);
    if (index === undefined) return false;
    this.#hits += hits - this.#hitsAt(index);
    if (this.hasHits) this.#table[index + UUID_WORDS] = hits;
    return true;
  }

  /** Removes all ids, and gives their memory back. */
  clear(): void {
    if (this.#capacity === 0) return;
    this.budget.giveBack(this.#table.byteLength);
    this.#table = NOTHING;
    this.#capacity = 0;
    this.#words = UUID_WORDS;
    this.#size = 0;
    this.#hits = 0;
  }

  #at(index: number): number {
    return this.#table[index] ?? 0;
  }

  #hitsAt(index: number): number {
    return this.#words > UUID_WORDS ? this.#at(index + UUID_WORDS) : 1;
  }

  /** This number has the version of the UUID in it, so it is never 0. */
  #isFree(index: number): boolean {
    return this.#at(index + 1) === 0;
  }

  /** Where the search for an id begins: by 28 bits of its first number, so that the product is exact. */
  #home(first: number): number {
    return Math.floor(((first >>> 4) * this.#capacity) / 2 ** 28) * this.#words;
  }

  #after(index: number): number {
    const next = index + this.#words;
    return next === this.#table.length ? 0 : next;
  }

  /** The index of the slot of an id, which may be any text; undefined if it is not there. */
  #find(id: string): number | undefined {
    if (this.#size === 0 || !parseUuid(id, wanted)) return undefined;
    const index = this.#indexOfWanted();
    return this.#isFree(index) ? undefined : index;
  }

  /** The index of the slot of the wanted id, or of the free slot that it would get. */
  #indexOfWanted(): number {
    const table = this.#table;
    let index = this.#home(wanted[0] ?? 0);
    while (
      !this.#isFree(index) &&
      (table[index] !== wanted[0] ||
        table[index + 1] !== wanted[1] ||
        table[index + 2] !== wanted[2] ||
        table[index + 3] !== wanted[3])
    ) {
      index = this.#after(index);
    }
    return index;
  }

  /** Frees a slot, and moves up the ids behind it that a search would no longer find. */
  #remove(index: number): void {
    this.#size -= 1;
    let free = index;
    for (let next = this.#after(free); !this.#isFree(next); next = this.#after(next)) {
      const home = this.#home(this.#at(next));
      // Its search begins behind the free slot, in circular order, so it stays.
      if (free <= next ? free < home && home <= next : free < home || home <= next) continue;
      this.#table.copyWithin(free, next, next + this.#words);
      free = next;
    }
    this.#table.fill(0, free, free + this.#words);
  }

  /** Puts the wanted id into its slot. */
  #put(hits: number): void {
    const table = this.#table;
    const index = this.#indexOfWanted();
    // For so few numbers `set` takes ten times as long.
    for (let word = 0; word < UUID_WORDS; word += 1) table[index + word] = wanted[word] ?? 0;
    if (this.#words > UUID_WORDS) table[index + UUID_WORDS] = hits;
  }

  #rebuild(capacity: number, words: number): boolean {
    const before = this.#table;
    const wordsBefore = this.#words;
    const hadHits = wordsBefore > UUID_WORDS;
    // Both tables exist for a moment.
    if (!this.budget.take(capacity * words * before.BYTES_PER_ELEMENT)) return false;
    this.#table = new Uint32Array(capacity * words);
    this.#isShared = false;
    this.#capacity = capacity;
    this.#words = words;
    for (let index = 0; index < before.length; index += wordsBefore) {
      if (before[index + 1] === 0) continue;
      for (let word = 0; word < UUID_WORDS; word += 1) wanted[word] = before[index + word] ?? 0;
      this.#put(hadHits ? (before[index + UUID_WORDS] ?? 0) : 1);
    }
    this.budget.giveBack(before.byteLength);
    return true;
  }
}
