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

export function yesOrNo() {
  return z.boolean('must be true or false');
}
