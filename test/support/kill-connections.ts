import type { Redis } from 'ioredis';

/** Cuts the connections on which the replicas send their commands, and no other client's. */
export async function killCommandConnections(client: Redis): Promise<void> {
  const list = (await client.client('LIST', 'TYPE', 'NORMAL')) as string;
  for (const line of list.split('\n')) {
    const id = /^id=(\d+) .* name=sluice:/.exec(line)?.[1];
    if (id !== undefined) await client.client('KILL', 'ID', id);
  }
}

/** Cuts every subscriber's connection, and with it whatever wakes are under way. */
export async function killSubscriberConnections(client: Redis): Promise<number> {
  return (await client.client('KILL', 'TYPE', 'PUBSUB')) as number;
}
