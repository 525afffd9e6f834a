/** The URL of the Redis that all test files share; keys must be unique, and nothing else broken. */
export function sharedRedisUrl(): string {
  const url = process.env.SLUICE_TEST_REDIS_URL;
  if (url === undefined) throw new Error('run the tests by `npm test`');
  return url;
}
