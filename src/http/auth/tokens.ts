import { createHash, timingSafeEqual } from 'node:crypto';

import { z } from 'zod';

import { type Scope, SCOPES } from './access.js';

/** The owner of a known token. */
export interface Caller {
  readonly name: string;
  readonly scopes: readonly Scope[];
}

const MIN_TOKEN_LENGTH = 16;

/** The messages show no value: a value in the wrong place might be a token. */
const fileSchema = z
  .array(
    z.strictObject(
      {
        name: z.string('must be a string').min(1, 'must not be empty'),
        token: z
          .string('must be a string')
          .min(MIN_TOKEN_LENGTH, `must have at least ${MIN_TOKEN_LENGTH} characters`)
          // A header can't carry other characters, or changes them.
          .regex(/^[!-~]*$/, 'must consist of visible ASCII characters, without blanks'),
        scopes: z.array(
          z.enum(SCOPES, { error: `must be one of ${SCOPES.join(', ')}` }),
          'must be a list',
        ),
      },
      {
        error: ({ code }) =>
          code === 'unrecognized_keys'
            ? 'must have no fields but name, token and scopes'
            : 'must be an object with name, token and scopes',
      },
    ),
    'must be a list',
  )
  .superRefine((entries, context) => {
    for (const field of ['name', 'token'] as const) {
      const seen = new Set<string>();
      for (const [index, { [field]: value }] of entries.entries()) {
        const message = 'must not be that of an entry before';
        if (seen.has(value)) context.addIssue({ code: 'custom', path: [index, field], message });
        seen.add(value);
      }
    }
  });

/** The tokens that are good. Only their hashes are kept. */
export class Tokens {
  readonly #callers: readonly { readonly caller: Caller; readonly hash: Buffer }[];

  /** @throws Error that says what is wrong and where, and shows no token */
  static parse(text: string): Tokens {
    const result = fileSchema.safeParse(parseJson(text));
    if (result.success) return new Tokens(result.data);
    const { path = [], message = 'is wrong' } = result.error.issues[0] ?? {};
    throw new Error(`${path.length === 0 ? 'it' : z.core.toDotPath(path)} ${message}`);
  }

  private constructor(entries: z.infer<typeof fileSchema>) {
    this.#callers = entries.map(({ token, ...caller }) => ({ caller, hash: sha256(token) }));
  }

  get names(): string[] {
    return this.#callers.map(({ caller }) => caller.name);
  }

  /** The owner of a token. The search compares it with every token, so that its time tells nothing. */
  callerOf(token: string): Caller | undefined {
    const hash = sha256(token);
    let found: Caller | undefined;
    for (const entry of this.#callers) {
      if (timingSafeEqual(entry.hash, hash)) found = entry.caller;
    }
    return found;
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
  throw new Error(`it is no JSON${where}`);
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
