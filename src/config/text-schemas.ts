import { z } from 'zod';

import { type Range, wholeNumber as wholeNumberOfJson, wholeNumberIn } from '../common/schemas.js';

/**
 * Schemas for values that arrive as text, from the environment or a query. Each message names the accepted values, for
 * the end of a sentence. The OpenAPI document describes the value that the text represents.
 */

/** Decimal digits, from `min` to `max`. */
export function wholeNumber(range: Range) {
  const { min, max } = range;
  const takes = wholeNumberIn(range);
  return z
    .string(takes)
    .regex(/^\d{1,15}$/, takes)
    .transform(Number)
    .pipe(wholeNumberOfJson(range))
    .meta({
      override: ({ jsonSchema }: { jsonSchema: { pattern?: string } }) => {
        delete jsonSchema.pattern;
        Object.assign(jsonSchema, { type: 'integer', minimum: min, maximum: max });
      },
    });
}

/** Valid texts, with commas between them. @param what names them */
export function listOf(isRight: (text: string) => boolean, what: string) {
  return z
    .string()
    .transform((text) => text.split(',').map((part) => part.trim()))
    .refine((parts) => parts.every(isRight), `${what}, with commas between them`);
}

/**
 * `true`, `false`, `1` or `0`, in any case. The OpenAPI document has only a boolean: generators of clients fail on two
 * types.
 */
export function yesOrNo() {
  const takes = 'true, false, 1 or 0';
  return z
    .string(takes)
    .pipe(z.stringbool({ truthy: ['true', '1'], falsy: ['false', '0'], error: takes }))
    .meta({ override: { type: 'boolean' } });
}
