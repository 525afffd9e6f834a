import type { Clock } from '../../common/clock.js';
import type { KeyLimits, Policies } from '../limiter.js';
import type { InstanceBounds } from './memory-budget.js';

/** How much an embedded limiter keeps. */
export interface MemoryBounds extends InstanceBounds {
  /** The most requests that may wait here at once, over all keys. */
  readonly maxWaiters: number;
  readonly maxKeys: number;
  /** The most memory that keys and the ids of approvals take together. */
  readonly maxBytes: number;
}

export const UNBOUNDED: MemoryBounds = {
  maxWaiters: Infinity,
  maxKeys: Infinity,
  maxIdsPerKey: Infinity,
  maxHoldsPerKey: Infinity,
  maxGroupsPerKey: Infinity,
  maxBytes: Infinity,
};

/**
 * A map of keys that remembers its last look-up: a request asks for its key more than once, and a look-up in a large map
 * is not cheap.
 */
export class KeyMap<Value> extends Map<string, Value> {
  #lastKey: string | undefined;
  #lastValue: Value | undefined;

  override get(key: string): Value | undefined {
    if (key !== this.#lastKey) {
      this.#lastKey = key;
      this.#lastValue = super.get(key);
    }
    return this.#lastValue;
  }

  override set(key: string, value: Value): this {
    this.#lastKey = undefined;
    return super.set(key, value);
  }

  override delete(key: string): boolean {
    this.#lastKey = undefined;
    this.#lastValue = undefined;
    return super.delete(key);
  }

  override clear(): void {
    this.#lastKey = undefined;
    this.#lastValue = undefined;
    super.clear();
  }
}

/** The policy of a key, which is looked up again only if another may apply. */
export class KeptPolicy<Policy extends KeyLimits> {
  #from: Policies<Policy>['current'];
  #policy: Policy;

  constructor(
    private readonly key: string,
    private readonly policies: Policies<Policy>,
  ) {
    this.#from = policies.current;
    this.#policy = this.#from.policyOf(key);
  }

  get current(): Policy {
    const { current } = this.policies;
    if (current !== this.#from) {
      this.#from = current;
      this.#policy = current.policyOf(this.key);
    }
    return this.#policy;
  }
}

const INTERVAL_MILLIS = 1000;
/** A sweep pauses after this many keys, so that requests come in between. */
const KEYS_BETWEEN_PAUSES = 10_000;
const PAUSE_MILLIS = 1;

/** Visits all keys from time to time, as long as there are any. */
export class Sweep<Entry> {
  #stop: (() => void) | undefined;
  /** Where it continues. A Map's iterator keeps its position while entries are added and removed. */
  #position: MapIterator<[string, Entry]> | undefined;

  /** @param visit may remove the key */
  constructor(
    private readonly entries: Map<string, Entry>,
    private readonly clock: Clock,
    private readonly visit: (key: string, entry: Entry) => void,
  ) {}

  /** To be called when a key was added. */
  start(): void {
    if (!this.#stop) this.#continueAfter(INTERVAL_MILLIS);
  }

  stop(): void {
    this.#stop?.();
  }

  #continueAfter(millis: number): void {
    this.#stop = this.clock.after(millis, () => this.#sweep());
  }

  #sweep(): void {
    this.#position ??= this.entries.entries();
    for (let visited = 0; visited < KEYS_BETWEEN_PAUSES; visited += 1) {
      const next = this.#position.next();
      if (next.done) {
        this.#position = undefined;
        break;
      }
      this.visit(...next.value);
    }
    if (this.#position) this.#continueAfter(PAUSE_MILLIS);
    else if (this.entries.size > 0) this.#continueAfter(INTERVAL_MILLIS);
    else this.#stop = undefined;
  }
}

/** The number of items in a page. */
const PAGE_SIZE = 50;

/**
 * Reads something of each key, in pages.
 * @param read returns undefined of a key that is left out
 */
// eslint-disable-next-line @typescript-eslint/require-await -- its caller reads pages as they come, from Redis too
export async function* inPages<Item>(
  keys: Iterable<string>,
  read: (key: string) => Item | undefined,
): AsyncIterable<readonly Item[]> {
  let page: Item[] = [];
  for (const key of keys) {
    const item = read(key);
    if (item !== undefined) page.push(item);
    if (page.length < PAGE_SIZE) continue;
    yield page;
    page = [];
  }
  yield page;
}
