import { z } from 'zod';

import type { Range } from './whole-number.js';

// eslint-disable-next-line no-control-regex -- these are what it excludes
const WITHOUT_CONTROLS = /^[^\u0000-\u001f\u007f-\u009f]*$/;
/** Half of a surrogate pair, which UTF-8 can't encode. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** A schema of a text that people read. @param bytes how many it may have in UTF-8 */
export function shortText({ min, max }: Range) {
  const message = `text of ${min} to ${max} bytes of UTF-8 without control characters`;
  return z
    .string(message)
    .min(min, message)
    .max(max, message)
    .regex(WITHOUT_CONTROLS, message)
    .refine((text) => !LONE_SURROGATE.test(text) && Buffer.byteLength(text) <= max, message);
}
