import type { Redis } from 'ioredis';

import { uniqueKey } from './unique-key.js';

/** Beside it, the texts of scripts and the buffers of connections are small. */
const BALLAST_BYTES = 20_000_000;

/** Runs `work` while Redis has no memory left, and has as much as this times its `maxmemory`. */
export async function whileFull<T>(
  redis: Pick<Redis, 'config' | 'del' | 'info' | 'setrange'>,
  work: () => Promise<T>,
  timesMaxmemory = 1.02,
): Promise<T> {
  const [, limit] = (await redis.config('GET', 'maxmemory')) as [string, string];
  const ballast = uniqueKey();
  await redis.setrange(ballast, BALLAST_BYTES, '0');
  await redis.config(
    'SET',
    'maxmemory',
    Math.floor(usedMemoryIn(await redis.info('memory')) / timesMaxmemory),
  );
  try {
    return await work();
  } finally {
    await redis.config('SET', 'maxmemory', limit);
    await redis.del(ballast);
  }
}

/** @param info what Redis replies to `INFO memory` */
export function usedMemoryIn(info: string): number {
  return Number(/^used_memory:(\d+)/m.exec(info)?.[1]);
}
