import { z } from 'zod';

import { problemOfPattern } from '../../rules/key-patterns.js';
import { SCOPES } from './caller.js';

const MIN_TOKEN_LENGTH = 16;
const FIELDS = 'name, token, scopes, key_patterns and waiting_share';
const SHARE = 'must be a number above 0, up to 1';

const tokenText = z
  .string('must be a string')
  .min(MIN_TOKEN_LENGTH, `must have at least ${MIN_TOKEN_LENGTH} characters`)
  // A header can't carry other characters, or changes them.
  .regex(/^[!-~]*$/, 'must consist of visible ASCII characters, without blanks');

const pattern = z.string('must be a string').superRefine((text, context) => {
  const problem = problemOfPattern({ pattern: text, isRegex: true });
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
export type TokenEntry = z.infer<typeof fileSchema>[number];

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
