import { randomUUID } from 'node:crypto';

import type { Redis } from 'ioredis';

import { until } from './until.js';

/** The commands that read many elements of a collection at once. */
const READS = /^(hgetall|hvals|hkeys|lrange|zrange|smembers|sort)$/i;

/** The commands that run a script. */
const RUNS = /^(fcall|fcall_ro|eval|evalsha)$/i;

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
  const calls = await elementsReadByCalls(redis, name, work);
  return calls.reduce((sum, elements) => sum + elements, 0);
}

/** The same for each call of a script that has a key with such a name. */
export async function elementsReadByCalls(
  redis: Redis,
  name: string,
  work: () => Promise<unknown>,
): Promise<number[]> {
  const commands: string[][] = [];
  const monitor = await redis.monitor();
  try {
    monitor.on('monitor', (_time: string, args: string[], source: string) => {
      const [command = ''] = args;
      if (source === 'lua' || /^echo$/i.test(command) || RUNS.test(command)) commands.push(args);
    });
    await work();
    const mark = randomUUID();
    await redis.echo(mark);
    await until(() => commands.some((command) => command[1] === mark));
  } finally {
    monitor.disconnect();
  }
  const calls: number[] = [];
  for (const [command = '', ...args] of commands) {
    if (RUNS.test(command) && args.some((arg) => arg.startsWith(name))) calls.push(0);
    if (!READS.test(command) || !args[0]?.startsWith(name)) continue;
    // SORT reads the whole list, wherever it puts the result.
    const reply =
      command.toLowerCase() === 'sort'
        ? await redis.lrange(args[0], 0, -1)
        : ((await redis.call(command, ...args)) as unknown[]);
    const elements = Array.isArray(reply) ? reply.length / (/^hgetall$/i.test(command) ? 2 : 1) : 0;
    calls.push((calls.pop() ?? 0) + elements);
  }
  return calls;
}
