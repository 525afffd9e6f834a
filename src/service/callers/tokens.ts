import { createHash, randomBytes } from 'node:crypto';

import type { Caller } from './caller.js';
import { KeyRights } from './key-rights.js';
import { parseTokenList, type TokenEntry } from './token-list.js';

/** Of this process only, so that nobody else can compute the hash of a text. */
const SALT = randomBytes(32).toString('base64');

const anyKey = (): boolean => true;

/** The tokens that are good. Only hashes of tokens are kept. */
export class Tokens {
  readonly names: readonly string[];
  readonly #callers = new Map<string, Caller>();
  /** The callers that may read the metrics, by their tokens' hashes. */
  #readers: ReadonlyMap<string, Caller> = this.#callers;

  /** @throws Error whose message says what is wrong and where, and shows no token */
  static parse(text: string): Tokens {
    return new Tokens(parseTokenList(text));
  }

  constructor(entries: readonly TokenEntry[]) {
    this.names = entries.map(({ name }) => name);
    const rights = new KeyRights(
      new Map(entries.map(({ name, key_patterns: patterns = [] }) => [name, patterns])),
    );
    for (const { name, token, scopes, key_patterns: patterns, waiting_share: share } of entries) {
      const mayUse = patterns ? (key: string) => rights.allows(name, key) : anyKey;
      const caller = { name, scopes, waitingShare: share, mayUse, mayUseAll: !patterns };
      for (const text of token) this.#callers.set(hashOf(text), caller);
    }
  }

  /**
   * The owner of a token. The time of the look-up can reveal something about hashes at most, which nobody can choose
   * without the salt. It is the same for any number of tokens.
   */
  callerOf(token: string): Caller | undefined {
    return this.#callers.get(hashOf(token));
  }

  /** The owner of a token for the metrics. */
  readerOf(token: string): Caller | undefined {
    return this.#readers.get(hashOf(token));
  }

  /** The tokens while their file is missing: they are good for the metrics only, which say that the file is missing. */
  whileGone(): Tokens {
    const tokens = new Tokens([]);
    tokens.#readers = this.#readers;
    return tokens;
  }
}

function hashOf(token: string): string {
  return createHash('sha256')
    .update(SALT + token)
    .digest('base64');
}
