import { z } from 'zod';

import { BOUNDS } from '../limiter/bounds.js';

const { min, max } = BOUNDS.holderBytes;
const MESSAGE = `text of ${min} to ${max} bytes of UTF-8 without control characters`;
// eslint-disable-next-line no-control-regex -- these are what it excludes
const WITHOUT_CONTROLS = /^[^\u0000-\u001f\u007f-\u009f]*$/;
/** Half of a surrogate pair, which UTF-8 can't encode. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** A text that says who holds an approval. */
export function holder() {
  return z
    .string(MESSAGE)
    .min(min, MESSAGE)
    .max(max, MESSAGE)
    .regex(WITHOUT_CONTROLS, MESSAGE)
    .refine((text) => !LONE_SURROGATE.test(text) && Buffer.byteLength(text) <= max, MESSAGE);
}
