import type { Redis } from 'ioredis';

import { until } from '../../support/until.js';

/** The names in Redis that still hold something of a replica that has ended. */
export async function remainsOf(client: Redis, replicaId: string): Promise<string[]> {
  // Redis notices the end of a process a moment later.
  await until(
    async () => !String(await client.client('LIST')).includes(` name=sluice:${replicaId} `),
  );
  const names = await client.keys('*');
  const held = await Promise.all(names.map((name) => contentOf(client, name)));
  return names.filter((_, i) => held[i]!.includes(replicaId));
}

async function contentOf(client: Redis, name: string): Promise<string> {
  switch (await client.type(name)) {
    case 'string':
      return String(await client.get(name));
    case 'hash':
      return JSON.stringify(await client.hgetall(name));
    case 'set':
      return JSON.stringify(await client.smembers(name));
    case 'list':
      return JSON.stringify(await waitersIn(client, name));
    default:
      // The name has expired in the meantime.
      return '';
  }
}

/** The entries of a queue without withdrawn ones, which stay there and are passed over. */
async function waitersIn(client: Redis, queue: string): Promise<string[]> {
  const tickets = await client.hvals(queue.replace(/:queue$/, ':waiting'));
  const entries = await client.lrange(queue, 0, -1);
  return entries.filter((entry) => tickets.includes(entry.split(':')[0]!));
}
