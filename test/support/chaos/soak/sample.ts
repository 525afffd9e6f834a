import type { RedisProcess } from '../../redis-process.js';
import type { Fleet } from '../fleet.js';
import { read, type Reading } from '../replica-reading.js';

/** What everybody holds at one moment. */
export interface Sample {
  readonly when: string;
  /** By their indexes. */
  readonly replicas: readonly Reading[];
  readonly redisKeys: number;
  readonly redisBytes: number;
}

export async function takeSample(
  when: string,
  fleet: Fleet,
  server: RedisProcess,
): Promise<Sample> {
  const replicas = await Promise.all(fleet.living.map(({ process }) => read(process)));
  const memory = (await server.command('INFO', 'memory')) as string;
  return {
    when,
    replicas,
    redisKeys: (await server.command('DBSIZE')) as number,
    redisBytes: Number(/^used_memory:(\d+)/m.exec(memory)?.[1]),
  };
}
