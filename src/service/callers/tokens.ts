import { createHash, randomBytes } from 'node:crypto';

import type { Caller } from './caller.js';
import { KeyRights } from './key-rights.js';
import { parseTokenList, type TokenEntry } from './token-list.js';

/** Of this process only, so that nobody else knows the hash of any text. */
const SALT = randomBytes(32).toString('base64');

const anyKey = (): boolean => true;

/** The tokens that are good. Only their hashes are kept. */
export class Tokens {
  readonly names: readonly string[];
  readonly #callers = new Map<string, Caller>();
  /** By their tokens' hashes, as all callers are. */
  #readers: ReadonlyMap<string, Caller> = this.#callers;

  /** @throws Error that says what is wrong and where, and shows no token */
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
      const caller = { name, scopes, waitingShare: share, mayUse };
      for (const text of token) this.#callers.set(hashOf(text), caller);
    }
  }

  /**
   * The owner of a token. The time of the look-up tells something of hashes at most, which nobody can aim at without
   * the salt; it is the same for any number of tokens.
   */
  callerOf(token: string): Caller | undefined {
    return this.#callers.get(hashOf(token));
  }

  /** The owner of a token for the metrics. */
  readerOf(token: string): Caller | undefined {
    return this.#readers.get(hashOf(token));
  }

  /** What is left of the tokens while their file is gone: nobody is known but to read the metrics, which tell of it. */
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
