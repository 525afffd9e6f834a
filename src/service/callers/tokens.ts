import { createHash, randomBytes } from 'node:crypto';

import type { Logger } from 'pino';
import { z } from 'zod';

import { RecentAnswers } from '../../common/collections.js';
import { SettingsError } from '../../config/named-file.js';
import { WatchedFiles } from '../../config/watched-files.js';
import { BOUNDS } from '../../limiter/bounds.js';
import { KeyPatterns, problemOfPattern } from '../../rules/key-patterns.js';
import { type Caller, SCOPES } from '../request-context.js';

/** Of this process only, so that nobody else can compute the hash of a text. */
const SALT = randomBytes(32).toString('base64');

const anyKey = (): boolean => true;

/** The tokens that are good. Only hashes of tokens are kept. */
export class Tokens {
  readonly names: readonly string[];
  readonly #callers = new Map<string, Caller>();
  /** The callers that may read the metrics, by their tokens' hashes. */
  #readers: ReadonlyMap<string, Caller> = this.#callers;

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
      patterns.map((pattern) => ({ name, key_pattern: pattern, key_pattern_is_regex: true })),
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

const MIN_TOKEN_LENGTH = 16;
const FIELDS = 'name, token, scopes, key_patterns and waiting_share';
const SHARE = 'must be a number above 0, up to 1';

const tokenText = z
  .string('must be a string')
  .min(MIN_TOKEN_LENGTH, `must have at least ${MIN_TOKEN_LENGTH} characters`)
  // A header can't carry other characters, or changes them.
  .regex(/^[!-~]*$/, 'must consist of visible ASCII characters, without blanks');

const pattern = z.string('must be a string').superRefine((text, context) => {
  const problem = problemOfPattern({ key_pattern: text, key_pattern_is_regex: true });
  // The rest of the message quotes the text.
  if (problem !== undefined) context.addIssue(problem.replace(/: `[\s\S]*$/, ''));
});

/** A caller's token, or several that are good at the same time. */
const tokens = z.unknown().transform((value, context): readonly string[] => {
  const isList = Array.isArray(value);
  const list: unknown[] = isList ? value : [value];
  if (list.length === 0) context.addIssue('must not be empty');
  for (const [i, text] of list.entries()) {
    const { error } = tokenText.safeParse(text);
    const message = error?.issues[0]?.message;
    if (message !== undefined) {
      context.addIssue({ code: 'custom', message, path: isList ? [i] : [] });
    }
  }
  return list as string[];
});

/** The messages show no value: a value in the wrong field might be a token. */
const fileSchema = z
  .array(
    z.strictObject(
      {
        name: z.string('must be a string').min(1, 'must not be empty'),
        token: tokens,
        scopes: z.array(
          z.enum(SCOPES, { error: `must be one of ${SCOPES.join(', ')}` }),
          'must be a list',
        ),
        /** Of the keys that the caller may touch; all keys if left out. */
        key_patterns: z.array(pattern, 'must be a list').optional(),
        /** The part of the waiting places that the caller may take. */
        waiting_share: z.number(SHARE).gt(0, SHARE).max(1, SHARE).optional(),
      },
      {
        error: ({ code }) =>
          code === 'unrecognized_keys'
            ? `must have no fields but ${FIELDS}`
            : 'must be an object with name, token and scopes',
      },
    ),
    'must be a list',
  )
  .superRefine((entries, context) => {
    rejectRepeated(context, entries, 'name');
    rejectRepeated(context, entries, 'token');
  });

/** One caller, as the file names it. */
type TokenEntry = z.infer<typeof fileSchema>[number];

/**
 * The entries of a file of tokens.
 * @throws Error whose message says what is wrong and where, and shows no token
 */
export function parseTokenList(text: string): readonly TokenEntry[] {
  const result = fileSchema.safeParse(parseJson(text));
  if (result.success) return result.data;
  const { path = [], message = 'is invalid' } = result.error.issues[0] ?? {};
  throw new Error(`${path.length === 0 ? 'it' : z.core.toDotPath(path)} ${message}`);
}

function rejectRepeated(
  context: z.RefinementCtx,
  entries: readonly TokenEntry[],
  field: 'name' | 'token',
): void {
  const seen = new Set<string>();
  for (const [index, entry] of entries.entries()) {
    const values = [entry[field]].flat();
    const message = `must not repeat the ${field} of an earlier entry`;
    if (values.some((value) => seen.has(value))) {
      context.addIssue({ code: 'custom', path: [index, field], message });
    }
    for (const value of values) seen.add(value);
  }
}

function parseJson(text: string): unknown {
  let where: string;
  try {
    return JSON.parse(text);
  } catch (error) {
    // V8 may quote the text in the rest of its message.
    where = / at position \d+/.exec((error as Error).message)?.[0] ?? '';
  }
  throw new Error(`it is not JSON${where}`);
}

const VARIABLE = 'AUTH_TOKENS_FILE';

/**
 * The tokens in a file, kept up to date. While the file is missing or empty, tokens are good for the metrics only,
 * which say so.
 * @throws SettingsError if the file can't be read, or is invalid
 */
export function watchTokenFile(path: string, logger: Logger): Promise<WatchedFiles<Tokens>> {
  return WatchedFiles.open(
    {
      what: 'tokens',
      files: [{ variable: VARIABLE, path, isSecret: true }],
      parse: ([content]) => parse(path, String(content)),
      describe: ({ names }) => ({ names, count: names.length }),
      whenGone: (last) => last.whileGone(),
    },
    logger,
  );
}

function parse(path: string, text: string): Tokens {
  try {
    return new Tokens(parseTokenList(text));
  } catch (error) {
    const got = `${JSON.stringify(path)} (${(error as Error).message})`;
    throw new SettingsError(VARIABLE, got, 'a JSON list of tokens');
  }
}
