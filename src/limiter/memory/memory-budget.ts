const MEBIBYTE = 2 ** 20;
/** What a process needs without the limiter: its code, requests under way, and garbage that is not collected yet. */
const OTHER_BYTES = 96 * MEBIBYTE;
const LEAST_BYTES = 4 * MEBIBYTE;

/**
 * What a limiter may take in a process, in bytes: half of what the heap has beyond the needs of the rest, since a
 * growing map exists twice for a moment. Without a bound, checks on enough keys would end the process.
 */
export function memoryIn(heapLimit: number): number {
  return Math.max(LEAST_BYTES, (heapLimit - OTHER_BYTES) / 2);
}

/** What a key takes without its ids, measured, and what each of its characters takes. */
const BYTES_PER_KEY = 1300;
const BYTES_PER_CHARACTER = 2;

/** What a key takes of the budget, without its ids. */
export function bytesOf(key: string): number {
  return BYTES_PER_KEY + BYTES_PER_CHARACTER * key.length;
}

/** A spent budget counts as spent until less than this part of it is taken. Otherwise its state would flicker. */
const NOT_FULL = 0.95;

/** The memory that a limiter may take, in bytes, and how much of it is taken. */
export class MemoryBudget {
  #taken = 0;
  #wasExceeded = false;

  constructor(private readonly max: number) {}

  get taken(): number {
    return this.#taken;
  }

  /** Whether a request for memory exceeded it, and little was given back since. */
  get isFull(): boolean {
    return this.#wasExceeded;
  }

  /** Whether this much is left. */
  has(bytes: number): boolean {
    return this.#taken + bytes <= this.max;
  }

  /** @returns false if there is not enough, so that nothing is taken */
  take(bytes: number): boolean {
    if (!this.has(bytes)) {
      this.#wasExceeded = true;
      return false;
    }
    this.#taken += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#taken -= bytes;
    if (this.#taken < this.max * NOT_FULL) this.#wasExceeded = false;
  }
}

/** For copies of keys that exist for a moment. */
export const UNBOUNDED_BUDGET = new MemoryBudget(Infinity);
