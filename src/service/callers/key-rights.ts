import { RecentAnswers } from '../../common/recent-answers.js';
import { BOUNDS } from '../../limiter/bounds.js';
import { KeyPatterns } from '../../rules/key-patterns.js';

/** The most keys whose callers are kept, in each of two generations. */
const KEPT_KEYS = 100_000;

const NOBODY: ReadonlySet<string> = new Set();

/**
 * Says which of the callers that patterns restrict may touch a key. All callers share one memory, so that its bound is
 * the same for a hundred callers as for one.
 */
export class KeyRights {
  readonly #patterns: KeyPatterns;
  /** The name of the caller of each pattern. */
  readonly #owners: readonly string[];
  readonly #recent = new RecentAnswers((key) => this.#find(key), KEPT_KEYS);

  /** @param patternsOf the expressions of each caller, by its name, without problems */
  constructor(patternsOf: ReadonlyMap<string, readonly string[]>) {
    const all = [...patternsOf].flatMap(([name, patterns]) =>
      patterns.map((pattern) => ({ name, pattern, isRegex: true })),
    );
    this.#owners = all.map(({ name }) => name);
    this.#patterns = new KeyPatterns(all);
  }

  /** Whether a caller may touch a key. From the key's second time on this takes one look into a map. */
  allows(name: string, key: string): boolean {
    // A key that is too long to exist is not worth its memory.
    const names = key.length > BOUNDS.keyBytes.max ? this.#find(key) : this.#recent.of(key);
    return names.has(name);
  }

  #find(key: string): ReadonlySet<string> {
    const indexes = this.#patterns.matching(key);
    return indexes.length === 0
      ? NOBODY
      : new Set(indexes.map((index) => this.#owners[index] ?? ''));
  }
}
