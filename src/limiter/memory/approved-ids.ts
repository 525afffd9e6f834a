import type { MemoryRoom } from './memory-room.js';
import { parseUuid, UUID_WORDS } from './uuid.js';

/** For the hits of an id. */
const HITS_WORDS = 1;
/** V8 keeps arrays of up to 64 bytes on its heap, where it allocates them in a tenth of the time. */
const FIRST_CAPACITY = 4;
const GROWTH = 1.5;
/** With more places in use, the search for a free one would take long. */
const MAX_LOAD = 0.8;

const NOTHING = new Uint32Array(0);
/** The id of the current search. */
const wanted = new Uint32Array(UUID_WORDS);

/**
 * The ids of the approvals of a window, in a hash table with open addressing: an id has the first free place after the
 * one that its first number gives. An id takes 20 to 30 bytes, in a set of texts it would take 150.
 */
export class ApprovedIds {
  /** A place for each id: its numbers, then its hits as soon as any id of the window has more than one. */
  #places = NOTHING;
  #capacity = 0;
  #words = UUID_WORDS;
  #size = 0;
  #hits = 0;

  constructor(private readonly room: MemoryRoom) {}

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
    if ((isFull || words !== this.#words) && !this.#rebuild(capacity, words)) return false;
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
    const place = this.#find(id);
    if (place === undefined) return false;
    this.#hits -= this.#hitsAt(place);
    this.#remove(place);
    return true;
  }

  /** @returns the hits of an id, which may be any text; undefined if it is not there */
  hitsOf(id: string): number | undefined {
    const place = this.#find(id);
    return place === undefined ? undefined : this.#hitsAt(place);
  }

  /**
   * Makes room for other hits of an id, if it is there.
   * @param id any text
   * @returns false if there is no memory for them, so that nothing has changed
   */
  makeRoom(id: string, hits: number): boolean {
    const words = hits === 1 ? this.#words : UUID_WORDS + HITS_WORDS;
    if (words === this.#words || this.#find(id) === undefined) return true;
    return this.#rebuild(this.#capacity, words);
  }

  /**
   * Gives an id other hits, for which `makeRoom` has made room.
   * @param id any text
   * @returns whether it is there
   */
  amend(id: string, hits: number): boolean {
    const place = this.#find(id);
    if (place === undefined) return false;
    this.#hits += hits - this.#hitsAt(place);
    if (this.hasHits) this.#places[place + UUID_WORDS] = hits;
    return true;
  }

  /** Removes all ids, and gives their memory back. */
  clear(): void {
    if (this.#capacity === 0) return;
    this.room.giveBack(this.#places.byteLength);
    this.#places = NOTHING;
    this.#capacity = 0;
    this.#words = UUID_WORDS;
    this.#size = 0;
    this.#hits = 0;
  }

  #at(index: number): number {
    return this.#places[index] ?? 0;
  }

  #hitsAt(place: number): number {
    return this.#words > UUID_WORDS ? this.#at(place + UUID_WORDS) : 1;
  }

  /** This number has the version of the UUID in it, so it is never 0. */
  #isFree(place: number): boolean {
    return this.#at(place + 1) === 0;
  }

  /** Where the search for an id begins: by 28 bits of its first number, so that the product is exact. */
  #home(first: number): number {
    return Math.floor(((first >>> 4) * this.#capacity) / 2 ** 28) * this.#words;
  }

  #after(place: number): number {
    const next = place + this.#words;
    return next === this.#places.length ? 0 : next;
  }

  /** The place of an id, which may be any text; undefined if it is not there. */
  #find(id: string): number | undefined {
    if (this.#size === 0 || !parseUuid(id, wanted)) return undefined;
    const place = this.#placeOfWanted();
    return this.#isFree(place) ? undefined : place;
  }

  /** The place of the wanted id, or the free place that it would have. */
  #placeOfWanted(): number {
    const places = this.#places;
    let place = this.#home(wanted[0] ?? 0);
    while (
      !this.#isFree(place) &&
      (places[place] !== wanted[0] ||
        places[place + 1] !== wanted[1] ||
        places[place + 2] !== wanted[2] ||
        places[place + 3] !== wanted[3])
    ) {
      place = this.#after(place);
    }
    return place;
  }

  /** Frees a place, and moves up the ids behind it that a search would no longer find. */
  #remove(place: number): void {
    this.#size -= 1;
    let free = place;
    for (let next = this.#after(free); !this.#isFree(next); next = this.#after(next)) {
      const home = this.#home(this.#at(next));
      // Its search begins behind the free place, in circular order, so it stays.
      if (free <= next ? free < home && home <= next : free < home || home <= next) continue;
      this.#places.copyWithin(free, next, next + this.#words);
      free = next;
    }
    this.#places.fill(0, free, free + this.#words);
  }

  /** Puts the wanted id into its place. */
  #put(hits: number): void {
    const places = this.#places;
    const place = this.#placeOfWanted();
    // For so few numbers `set` takes ten times as long.
    for (let word = 0; word < UUID_WORDS; word += 1) places[place + word] = wanted[word] ?? 0;
    if (this.#words > UUID_WORDS) places[place + UUID_WORDS] = hits;
  }

  #rebuild(capacity: number, words: number): boolean {
    const before = this.#places;
    const wordsBefore = this.#words;
    const hadHits = wordsBefore > UUID_WORDS;
    // Both tables exist for a moment.
    if (!this.room.take(capacity * words * before.BYTES_PER_ELEMENT)) return false;
    this.#places = new Uint32Array(capacity * words);
    this.#capacity = capacity;
    this.#words = words;
    for (let place = 0; place < before.length; place += wordsBefore) {
      if (before[place + 1] === 0) continue;
      for (let word = 0; word < UUID_WORDS; word += 1) wanted[word] = before[place + word] ?? 0;
      this.#put(hadHits ? (before[place + UUID_WORDS] ?? 0) : 1);
    }
    this.room.giveBack(before.byteLength);
    return true;
  }
}
