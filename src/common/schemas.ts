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

// eslint-disable-next-line no-control-regex -- these are what it excludes
const WITHOUT_CONTROLS = /^[^\u0000-\u001f\u007f-\u009f]*$/;

/** A schema of a text that people read. @param bytes how many it may have in UTF-8 */
export function shortText({ min, max }: Range) {
  const message = `text of ${min} to ${max} bytes of UTF-8 without control characters`;
  return z
    .string(message)
    .min(min, message)
    .max(max, message)
    .regex(WITHOUT_CONTROLS, message)
    .refine((text) => text.isWellFormed() && Buffer.byteLength(text) <= max, message);
}

/** A UUID of any version, in lower case from here on. */
export function requestId() {
  return z.guid('a UUID').toLowerCase();
}

const SCHEMA = requestId();

export function isRequestId(text: string): boolean {
  return SCHEMA.safeParse(text).success;
}

/** @returns undefined for a text that is no JSON, or has another form, such as one of another version */
export function parsedMessage<Message>(
  schema: z.ZodType<Message>,
  text: string,
): Message | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
