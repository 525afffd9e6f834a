import { BOUNDS } from '../limiter/bounds.js';
import { serviceError } from './service-error.js';

/**
 * Checks the length of a key.
 * @param key decoded
 * @throws ServiceError INVALID_KEY_LENGTH
 */
export function parseKey(key: string): string {
  const bytes = Buffer.byteLength(key);
  const { min, max } = BOUNDS.keyBytes;
  if (bytes >= min && bytes <= max) return key;
  throw serviceError('INVALID_KEY_LENGTH', { min, max, bytes });
}
