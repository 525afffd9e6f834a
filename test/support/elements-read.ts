import { randomUUID } from 'node:crypto';

import type { Redis } from 'ioredis';

import { until } from './until.js';

/** The commands that read many elements of a collection at once. */
const READS = /^(hgetall|hvals|hkeys|lrange|zrange|smembers|sort)$/i;

/**
 * How many elements of collections the scripts read whole or by range while `work` runs. Each read is sent again to count
 * what it finds, so `work` must leave what it reads as it is.
 * @param name of the keys, or the begin of their names
 */
export async function elementsRead(
  redis: Redis,
  name: string,
  work: () => Promise<unknown>,
): Promise<number> {
  const commands: string[][] = [];
  const monitor = await redis.duplicate().monitor();
  try {
    monitor.on('monitor', (_time: string, args: string[], source: string) => {
      if (source === 'lua' || args[0]?.toLowerCase() === 'echo') commands.push(args);
    });
    await work();
    const mark = randomUUID();
    await redis.echo(mark);
    await until(() => commands.some((command) => command[1] === mark));
  } finally {
    monitor.disconnect();
  }
  let elements = 0;
  for (const [command = '', ...args] of commands) {
    if (!READS.test(command) || !args[0]?.startsWith(name)) continue;
    // SORT reads the whole list, wherever it puts the result.
    const reply =
      command.toLowerCase() === 'sort'
        ? await redis.lrange(args[0], 0, -1)
        : ((await redis.call(command, ...args)) as unknown[]);
    elements += Array.isArray(reply) ? reply.length / (/^hgetall$/i.test(command) ? 2 : 1) : 0;
  }
  return elements;
}
