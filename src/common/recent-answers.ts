/**
 * Remembers what was found for the keys that were asked for lately. There are two generations of them: when the young
 * one is full it becomes the old one, and the old one is forgotten.
 */
export class RecentAnswers<T extends object> {
  #young = new Map<string, T>();
  #old = new Map<string, T>();
  /** Those asked for last: a request asks for its key more than once. */
  #lastKey: string | undefined;
  #lastAnswer: T | undefined;

  /**
   * @param find the answer for a key that is not remembered
   * @param size the most keys in each generation
   */
  constructor(
    private readonly find: (key: string) => T,
    private readonly size: number,
  ) {}

  /** The answer for a key. While it is remembered this takes one look into a map. */
  of(key: string): T {
    if (this.#lastAnswer !== undefined && this.#lastKey === key) return this.#lastAnswer;
    const answer = this.#young.get(key) ?? this.#remember(key);
    this.#lastKey = key;
    this.#lastAnswer = answer;
    return answer;
  }

  #remember(key: string): T {
    const answer = this.#old.get(key) ?? this.find(key);
    if (this.#young.size >= this.size) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, answer);
    return answer;
  }
}
