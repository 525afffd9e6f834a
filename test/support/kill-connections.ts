import type { Redis } from 'ioredis';

type Send = (...command: [name: string, ...args: string[]]) => Promise<unknown>;

/** Cuts the replicas' connections of one type, and no other client's. */
export async function killReplicaConnections(send: Send, type: 'NORMAL' | 'PUBSUB'): Promise<void> {
  const list = (await send('CLIENT', 'LIST', 'TYPE', type)) as string;
  for (const line of list.split('\n')) {
    const id = /^id=(\d+) .* name=sluice:/.exec(line)?.[1];
    if (id !== undefined) await send('CLIENT', 'KILL', 'ID', id);
  }
}

/** Cuts every subscriber's connection, which loses the wakes under way. */
export async function killSubscriberConnections(client: Redis): Promise<number> {
  return (await client.client('KILL', 'TYPE', 'PUBSUB')) as number;
}
