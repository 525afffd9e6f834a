import { z } from 'zod';

/** A UUID of any version, in lower case from here on. */
export function requestId() {
  return z.guid('a UUID').toLowerCase();
}
