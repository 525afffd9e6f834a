import { randomUUID } from 'node:crypto';

/** A limiter key that no other test uses. */
export function uniqueKey(): string {
  return `test-${randomUUID()}`;
}
