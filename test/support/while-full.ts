import type { Redis } from 'ioredis';

/** Runs `work` while Redis has no memory left. */
export async function whileFull<T>(
  redis: Pick<Redis, 'config'>,
  work: () => Promise<T>,
): Promise<T> {
  const [, limit] = (await redis.config('GET', 'maxmemory')) as [string, string];
  await redis.config('SET', 'maxmemory', '1');
  try {
    return await work();
  } finally {
    await redis.config('SET', 'maxmemory', limit);
  }
}
