/** How much a limiter keeps of each key. */
export interface InstanceBounds {
  /** The most ids of approvals that are kept for a window. */
  readonly maxIdsPerKey: number;
  /** The most approvals that are held. */
  readonly maxHoldsPerKey: number;
  /** The most groups in whose own limits anything counts, or that are paused. */
  readonly maxGroupsPerKey: number;
}

const MEBIBYTE = 2 ** 20;
/** What a process needs without the limiter: its code, requests under way, and garbage that is not collected yet. */
const OTHER_BYTES = 96 * MEBIBYTE;
const LEAST_BYTES = 4 * MEBIBYTE;
const OLD_SPACE_SIZE = /--max[-_]old[-_]space[-_]size[= ](\d+)/g;
/** What `--max-old-space-size` leaves out of the limit up to Node 22. From Node 24 on it is up to 192 MiB. */
const YOUNG_BYTES = 48 * MEBIBYTE;

/**
 * What a limiter may take in a process, in bytes: half of what the heap has beyond the needs of the rest, since a
 * growing map exists twice for a moment. Without a bound, checks on enough keys would end the process.
 * @param heapLimit V8's limit, in bytes. It includes the space of young objects, where a limiter's can't stay. With
 *   `--max-old-space-size`, that space may be the larger one.
 * @param options the options of Node, from the command line and NODE_OPTIONS
 */
export function memoryIn(heapLimit: number, options = ''): number {
  const oldSpace = [...options.matchAll(OLD_SPACE_SIZE)].at(-1)?.[1] ?? Infinity;
  const limit = Math.min(heapLimit, Number(oldSpace) * MEBIBYTE + YOUNG_BYTES);
  return Math.max(LEAST_BYTES, (limit - OTHER_BYTES) / 2);
}

/** What a key takes without its ids, measured, and what each of its characters takes. */
const BYTES_PER_KEY = 1320;
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
