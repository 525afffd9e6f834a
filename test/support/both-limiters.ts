import { uniqueKey } from './unique-key.js';
import type { RedisForTests } from './use-redis.js';

export type Environment = Readonly<Record<string, string>>;

/**
 * The rows of a `describe.each` that runs a suite on each limiter: its name, and the settings that
 * choose it, with a key prefix that nobody else uses.
 */
export function bothLimiters(
  redis: RedisForTests,
): [name: 'embedded' | 'redis', settings: () => Environment][] {
  return [
    ['embedded', () => ({})],
    ['redis', () => ({ REDIS_URL: redis.url, KEY_PREFIX: `${uniqueKey()}:` })],
  ];
}
