import { z } from 'zod';

/** The bounds of a number, both included. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The values of a range, for the end of a sentence. */
export function wholeNumberIn({ min, max }: Range): string {
  return `a whole number from ${min} to ${max}`;
}

/** A number of JSON or YAML. */
export function wholeNumber(range: Range, message = wholeNumberIn(range)) {
  return z.int(message).min(range.min, message).max(range.max, message);
}
