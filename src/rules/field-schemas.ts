import { z } from 'zod';

import {
  type Range,
  wholeNumber as wholeNumberOfJson,
  wholeNumberIn,
} from '../common/whole-number.js';

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
