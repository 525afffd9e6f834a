import type { Clock } from './clock.js';

/**
 * Keeps the values of the keys that were asked for recently, in two generations. When the young one is full, it becomes
 * the old one, and the old one is forgotten.
 */
export class RecentValues<T> {
  #young = new Map<string, T>();
  #old = new Map<string, T>();

  /** @param size the most keys in each generation */
  constructor(private readonly size: number) {}

  /** The value of a key, if it is kept. It moves to the young generation. */
  get(key: string): T | undefined {
    return this.#young.get(key) ?? this.#rejuvenated(key);
  }

  set(key: string, value: T): void {
    if (this.#young.size >= this.size && !this.#young.has(key)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }

  delete(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
  }

  /** Every value that is kept; for a key the latest. */
  *values(): Iterable<T> {
    yield* this.#young.values();
    for (const [key, value] of this.#old) if (!this.#young.has(key)) yield value;
  }

  #rejuvenated(key: string): T | undefined {
    const value = this.#old.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }
}

/** Remembers what was found for the keys that were asked for recently. */
export class RecentAnswers<T extends object> {
  readonly #answers: RecentValues<T>;
  /** The last question: a request asks for its key more than once. */
  #lastKey: string | undefined;
  #lastAnswer: T | undefined;

  /**
   * @param find the answer for a key that is not remembered
   * @param size the most keys in each of the two generations
   */
  constructor(
    private readonly find: (key: string) => T,
    size: number,
  ) {
    this.#answers = new RecentValues(size);
  }

  /** The answer for a key. If it is remembered, this takes one look-up in a map. */
  of(key: string): T {
    if (this.#lastAnswer !== undefined && this.#lastKey === key) return this.#lastAnswer;
    const answer = this.#answers.get(key) ?? this.#found(key);
    this.#lastKey = key;
    this.#lastAnswer = answer;
    return answer;
  }

  #found(key: string): T {
    const answer = this.find(key);
    this.#answers.set(key, answer);
    return answer;
  }
}

/** Keys that are remembered for a time. */
export class KeysForTime {
  readonly #until = new Map<string, number>();

  constructor(
    private readonly millis: number,
    private readonly clock: Pick<Clock, 'now'>,
  ) {}

  /** Whether none is remembered. To know that takes no key. */
  get isEmpty(): boolean {
    return this.#until.size === 0;
  }

  add(key: string): void {
    this.#until.set(key, this.clock.now() + this.millis);
  }

  has(key: string): boolean {
    if (this.clock.now() < (this.#until.get(key) ?? 0)) return true;
    this.#until.delete(key);
    return false;
  }
}

/** Groups items by what `of` says of them, in the order of their first items. */
export function groupBy<Item>(
  items: readonly Item[],
  of: (item: Item) => unknown,
): [Item, ...Item[]][] {
  const groups = new Map<unknown, [Item, ...Item[]]>();
  for (const item of items) {
    const group = of(item);
    const others = groups.get(group);
    if (others) others.push(item);
    else groups.set(group, [item]);
  }
  return [...groups.values()];
}
