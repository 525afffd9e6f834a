import { z } from 'zod';

import { type Range, wholeNumber as wholeNumberOfJson, wholeNumberIn } from '../common/schemas.js';
import { nearestName } from '../common/texts.js';

/** Schemas for the fields of rules. Each message says what a field must be. */

export function wholeNumber(range: Range) {
  return wholeNumberOfJson(range, `must be ${wholeNumberIn(range)}`);
}

export function text() {
  return z.string({
    error: ({ input }) => {
      const isUnquoted = typeof input === 'number' || typeof input === 'boolean';
      return `must be a string${isUnquoted ? ', in quotes' : ''}`;
    },
  });
}

export function yesOrNo() {
  return z.boolean('must be true or false');
}

export function areDifferent(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}

/** A field may have one wrong letter for each group of this many letters: then an error names the field that is meant. */
const LETTERS_PER_MISTAKE = 3;

/**
 * A schema of an object that rejects unknown fields.
 * @param otherwise the message if there is no unknown field
 */
export function strictObject<Fields extends z.ZodRawShape>(fields: Fields, otherwise: string) {
  return z.strictObject(fields, {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? unknownField(issue.keys[0] ?? '', issue.input, Object.keys(fields))
        : otherwise,
  });
}

function unknownField(name: string, object: unknown, fields: readonly string[]): string {
  const meant =
    nearestName(name, fields, Math.floor(name.length / LETTERS_PER_MISTAKE)) ??
    missingList(object as Readonly<Record<string, unknown>>, name, fields);
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
  return `unknown field ${name}${hint}`;
}

/** The only field that there could be, if a list has another name. */
function missingList(
  object: Readonly<Record<string, unknown>>,
  name: string,
  [only, ...others]: readonly string[],
): string | undefined {
  if (only === undefined || others.length > 0 || only in object) return undefined;
  return Array.isArray(object[name]) ? only : undefined;
}
