import { randomFillSync } from 'node:crypto';

import { copyNumbers, parseUuid, UUID_WORDS } from '../../../common/uuid.js';
import { type MemoryBudget, UNBOUNDED_BUDGET } from '../memory-budget.js';

const BYTE_VALUES = 256;
const BYTES_PER_WORD = 4;
/** A random number for each value of each byte of a UUID: the seed of this process. */
const RANDOM = randomFillSync(new Uint32Array(UUID_WORDS * BYTES_PER_WORD * BYTE_VALUES));

/**
 * Replaces the numbers of a UUID by others. The second one is a hash of all. Different UUIDs get different numbers.
 *
 * Callers choose ids, so the hash has a random seed and takes all numbers: the ids of UUIDv7 of one minute have few first
 * numbers. These are two rounds of a Feistel network with tabulation hashing, by which linear probing takes few steps
 * whatever the ids are (Pătraşcu and Thorup, 2012).
 */
export function scramble(words: Uint32Array): void {
  const second = words[1] ?? 0;
  const rest = hashOf(second, 0) ^ hashOf(words[2] ?? 0, 1) ^ hashOf(words[3] ?? 0, 2);
  const first = (words[0] ?? 0) ^ rest;
  words[0] = first;
  words[1] = second ^ hashOf(first, 3);
}

/** @param place which of the random numbers it takes: another place has others */
function hashOf(number: number, place: number): number {
  const row = place * BYTES_PER_WORD * BYTE_VALUES;
  return (
    (RANDOM[row + (number & 0xff)] ?? 0) ^
    (RANDOM[row + BYTE_VALUES + ((number >>> 8) & 0xff)] ?? 0) ^
    (RANDOM[row + 2 * BYTE_VALUES + ((number >>> 16) & 0xff)] ?? 0) ^
    (RANDOM[row + 3 * BYTE_VALUES + (number >>> 24)] ?? 0)
  );
}

/** For the hits of an id. */
const HITS_WORDS = 1;
/** V8 keeps arrays of up to 64 bytes on its heap, where it allocates them in a tenth of the time. */
const FIRST_CAPACITY = 4;
const GROWTH = 1.5;
/** With a fuller table, the search for a free slot would take long. */
const MAX_LOAD = 0.8;

const NOTHING = new Uint32Array(0);
/** The numbers of the current search's id, scrambled as those in the table. */
const wanted = new Uint32Array(UUID_WORDS);
/** Those of an id that moves to another table. */
const moved = new Uint32Array(UUID_WORDS);

/**
 * The ids of the approvals of a window, in a hash table with open addressing: an id has the first free slot after the
 * one that its hash gives. The hash is the second number of a slot. An id takes 20 to 30 bytes, and in a set of texts 150.
 */
export class ApprovedIds {
  /** A slot for each id: its numbers, then its hits as soon as any id of the window has more than one. */
  #table = NOTHING;
  #capacity = 0;
  protected words = UUID_WORDS;
  protected idCount = 0;
  protected hitCount = 0;

  constructor(private readonly budget: MemoryBudget) {}

  get size(): number {
    return this.idCount;
  }

  /** Whether an id of the window has, or had, other hits than one. */
  get hasHits(): boolean {
    return this.words > UUID_WORDS;
  }

  /** The hits of all approvals that are not released. */
  get hits(): number {
    return this.hitCount;
  }

  /**
   * Returns a copy that counts the ids, and finds them in the original. Further ids may be added to it, and are only counted.
   */
  copy(): ApprovedIds {
    const copy = new ApprovedIdCount(this);
    copy.words = this.words;
    copy.idCount = this.idCount;
    copy.hitCount = this.hitCount;
    return copy;
  }

  /**
   * Adds an id, unless it is there.
   * @param id a UUID
   * @returns false if there is no memory for it, so that nothing has changed
   */
  add(id: string, hits: number): boolean {
    if (!want(id)) throw new Error(`no UUID: ${id}`);
    let index = this.#indexOf(wanted);
    if (!this.#isFree(index)) return true;
    const words = hits > 1 ? UUID_WORDS + HITS_WORDS : this.words;
    const isFull = this.idCount + 1 > this.#capacity * MAX_LOAD;
    const capacity = isFull
      ? Math.max(FIRST_CAPACITY, Math.ceil(this.#capacity * GROWTH))
      : this.#capacity;
    if (isFull || words !== this.words) {
      if (!this.#rebuild(capacity, words)) return false;
      index = this.#indexOf(wanted);
    }
    this.#put(index, wanted, hits);
    this.idCount += 1;
    this.hitCount += hits;
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
    this.hitCount -= this.#hitsAt(index);
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
    const words = hits === 1 ? this.words : UUID_WORDS + HITS_WORDS;
    if (words === this.words || this.#find(id) === undefined) return true;
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
    this.hitCount += hits - this.#hitsAt(index);
    if (this.hasHits) this.#table[index + UUID_WORDS] = hits;
    return true;
  }

  /** Removes all ids, and gives their memory back. */
  clear(): void {
    if (this.#capacity > 0) this.budget.giveBack(this.#table.byteLength);
    this.#table = NOTHING;
    this.#capacity = 0;
    this.words = UUID_WORDS;
    this.idCount = 0;
    this.hitCount = 0;
  }

  #hitsAt(index: number): number {
    return this.words > UUID_WORDS ? (this.#table[index + UUID_WORDS] ?? 0) : 1;
  }

  #isFree(index: number): boolean {
    return isFree(this.#table, index);
  }

  /** Where the search for an id begins: by 28 bits of its hash, so that the product is exact. */
  #home(hash: number): number {
    return Math.floor(((hash >>> 4) * this.#capacity) / 2 ** 28) * this.words;
  }

  #after(index: number): number {
    const next = index + this.words;
    return next === this.#table.length ? 0 : next;
  }

  /** The index of the slot of an id, which may be any text; undefined if it is not there. */
  #find(id: string): number | undefined {
    if (this.idCount === 0 || !want(id)) return undefined;
    const index = this.#indexOf(wanted);
    return this.#isFree(index) ? undefined : index;
  }

  /** The index of the slot of an id, or of the free slot that it would get. */
  #indexOf(id: Uint32Array): number {
    const table = this.#table;
    const hash = id[1] ?? 0;
    let index = this.#home(hash);
    while (
      !isFree(table, index) &&
      (table[index + 1] !== hash ||
        table[index] !== id[0] ||
        table[index + 2] !== id[2] ||
        table[index + 3] !== id[3])
    ) {
      index = this.#after(index);
    }
    return index;
  }

  /** Frees a slot, and moves up the ids behind it that a search would no longer find. */
  #remove(index: number): void {
    this.idCount -= 1;
    let free = index;
    for (let next = this.#after(free); !this.#isFree(next); next = this.#after(next)) {
      const home = this.#home(this.#table[next + 1] ?? 0);
      // Its search begins behind the free slot, in circular order, so it stays.
      if (free <= next ? free < home && home <= next : free < home || home <= next) continue;
      this.#table.copyWithin(free, next, next + this.words);
      free = next;
    }
    this.#table.fill(0, free, free + this.words);
  }

  /** Puts an id into a free slot. */
  #put(index: number, id: Uint32Array, hits: number): void {
    copyNumbers(id, this.#table, 0, index);
    if (this.words > UUID_WORDS) this.#table[index + UUID_WORDS] = hits;
  }

  #rebuild(capacity: number, words: number): boolean {
    const before = this.#table;
    const wordsBefore = this.words;
    const hadHits = wordsBefore > UUID_WORDS;
    // Both tables exist for a moment.
    if (!this.budget.take(capacity * words * before.BYTES_PER_ELEMENT)) return false;
    this.#table = new Uint32Array(capacity * words);
    this.#capacity = capacity;
    this.words = words;
    for (let index = 0; index < before.length; index += wordsBefore) {
      if (isFree(before, index)) continue;
      copyNumbers(before, moved, index);
      this.#put(this.#indexOf(moved), moved, hadHits ? (before[index + UUID_WORDS] ?? 0) : 1);
    }
    this.budget.giveBack(before.byteLength);
    return true;
  }
}

/** The number of the ids of another table, and their hits. */
class ApprovedIdCount extends ApprovedIds {
  /** @param original undefined once they are cleared */
  constructor(private original: ApprovedIds | undefined) {
    super(UNBOUNDED_BUDGET);
  }

  override add(_id: string, hits: number): boolean {
    this.idCount += 1;
    this.hitCount += hits;
    if (hits > 1) this.words = UUID_WORDS + HITS_WORDS;
    return true;
  }

  override hitsOf(id: string): number | undefined {
    return this.original?.hitsOf(id);
  }

  /** An id may be released once. It stays known. */
  override release(id: string): boolean {
    const hits = this.hitsOf(id);
    if (hits === undefined) return false;
    this.idCount -= 1;
    this.hitCount -= hits;
    return true;
  }

  override clear(): void {
    super.clear();
    this.original = undefined;
  }
}

/** Begins the search for an id, which may be any text. @returns whether it is a UUID */
function want(id: string): boolean {
  if (!parseUuid(id, wanted)) return false;
  scramble(wanted);
  return true;
}

/** A free slot has zeros. No caller can choose an id whose first numbers are, and of 2^64 ids one would have them by chance. */
function isFree(table: Uint32Array, index: number): boolean {
  return (table[index + 1] ?? 0) === 0 && (table[index] ?? 0) === 0;
}
