import { z } from 'zod';

/** A UUID of any version, in lower case from here on. */
export function requestId() {
  return z.guid('a UUID').toLowerCase();
}

const SCHEMA = requestId();

/** Whether a text is a UUID. */
export function isRequestId(text: string): boolean {
  return SCHEMA.safeParse(text).success;
}
