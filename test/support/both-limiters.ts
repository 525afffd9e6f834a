import { extent } from './extent.js';
import { uniqueKey } from './unique-key.js';
import type { RedisForTests } from './use-redis.js';

export type Environment = Readonly<Record<string, string>>;

/** So long that a short hang of the machine does not look like an outage. */
export const PATIENT_STORE: Environment = {
  STORE_TIMEOUT_MILLIS: '60000',
  REPLICA_LEASE_MILLIS: '60000',
};

/**
 * The rows of a `describe.each` that runs a suite of the service on each limiter: its name, and the settings that choose
 * it, with a key prefix of its own. In a quick run it is only the limiter on Redis: test/redis/behaviour
 * tests that the embedded one behaves the same.
 */
export function bothLimiters(
  redis: RedisForTests,
): [name: 'embedded' | 'redis', settings: () => Environment][] {
  const onRedis = (): Environment => ({
    ...PATIENT_STORE,
    REDIS_URL: redis.url,
    KEY_PREFIX: `${uniqueKey()}:`,
  });
  return extent(
    [['redis', onRedis]],
    [
      ['embedded', () => ({})],
      ['redis', onRedis],
    ],
  );
}
