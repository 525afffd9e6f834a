import { RecentValues } from './recent-values.js';

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
