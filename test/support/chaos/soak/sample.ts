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

/** A table of samples: megabytes, handles and milliseconds are of the replica that has the most. */
export function samplesText(samples: readonly Sample[]): string {
  const rows = samples.map(({ when, replicas, redisKeys, redisBytes }) => {
    const most = (value: (reading: Reading) => number): number => Math.max(...replicas.map(value));
    return [
      when,
      megabytes(most(({ heapBytes }) => heapBytes)),
      megabytes(most(({ residentBytes }) => residentBytes)),
      String(most(({ handles }) => handles)),
      most(({ eventLoopLagP99Millis }) => eventLoopLagP99Millis).toFixed(1),
      String(redisKeys),
      megabytes(redisBytes),
    ];
  });
  const header = ['', 'heap MB', 'rss MB', 'handles', 'lag p99 ms', 'Redis keys', 'Redis MB'];
  return [header, ...rows].map((cells) => cells.map((cell) => cell.padEnd(12)).join('')).join('\n');
}

function megabytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
