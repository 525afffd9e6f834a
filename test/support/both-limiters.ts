import { uniqueKey } from './unique-key.js';
import type { RedisForTests } from './use-redis.js';

export type Environment = Readonly<Record<string, string>>;

/** So that a machine that stands still for a moment is not taken for an outage. */
export const PATIENT_STORE: Environment = {
  STORE_TIMEOUT_MILLIS: '60000',
  REPLICA_LEASE_MILLIS: '60000',
};

/**
 * The rows of a `describe.each` that runs a suite on each limiter: its name, and the settings that
 * choose it, with a key prefix that nobody else uses.
 */
export function bothLimiters(
  redis: RedisForTests,
): [name: 'embedded' | 'redis', settings: () => Environment][] {
  return [
    ['embedded', () => ({})],
    ['redis', () => ({ ...PATIENT_STORE, REDIS_URL: redis.url, KEY_PREFIX: `${uniqueKey()}:` })],
  ];
}
