import type { Redis } from 'ioredis';

/** Everything that Redis holds of a key, with the time when it removes each name. @param state the name of its state */
export async function contentsOfKey(client: Redis, state: string): Promise<unknown[]> {
  const names = (await client.keys(`${state}*`)).sort();
  return Promise.all(
    names.map(async (name) => [
      name,
      await client.pexpiretime(name),
      await contentOf(client, name),
    ]),
  );
}

/** What Redis has under a name. A hash and a set have no order. */
async function contentOf(client: Redis, name: string): Promise<unknown> {
  switch (await client.type(name)) {
    case 'hash':
      return client.hgetall(name);
    case 'set':
      return (await client.smembers(name)).sort();
    case 'zset':
      return client.zrange(name, '0', '-1', 'WITHSCORES');
    default:
      return client.lrange(name, 0, -1);
  }
}
