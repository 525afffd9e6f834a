import { setTimeout as delay } from 'node:timers/promises';

import type { Redis } from 'ioredis';

import { withinDeadline } from '../availability/deadline.js';

/**
 * Whether a connection is of no use any more: nothing at all arrives on it although commands are under way, while
 * another connection to the same server is answered. Where that is not answered either, the server stands still: it
 * runs all that it was sent when it goes on, in its order, and its late replies are as good as others.
 */
export async function isDead(client: Redis, timeoutMillis: number): Promise<boolean> {
  if (client.status !== 'ready' || client.commandQueue.length === 0) return false;
  const { stream } = client;
  const { bytesRead } = stream;
  const other = client.duplicate({ lazyConnect: true, retryStrategy: () => null });
  // How it fails does not matter.
  other.on('error', () => undefined);
  try {
    await withinDeadline(other.connect(), 2 * timeoutMillis);
    // What is late on its way has come by then.
    await delay(2 * timeoutMillis);
    await withinDeadline(other.ping(), timeoutMillis);
  } catch {
    return false;
  } finally {
    other.disconnect();
  }
  return client.stream === stream && stream.bytesRead === bytesRead;
}

/**
 * Ends each handshake in which nothing arrives for that long. Commands have no time limit of their own: the callers
 * have, and a reply is awaited for as long as its connection lives.
 */
export function limitHandshake<Client extends Redis>(client: Client, millis: number): Client {
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => {
    clearTimeout(timer);
  };
  client.on('connect', () => {
    stop();
    let seen = client.stream.bytesRead;
    timer = setInterval(() => {
      const { bytesRead } = client.stream;
      if (bytesRead === seen && client.status === 'connect') client.disconnect(true);
      seen = bytesRead;
    }, millis);
  });
  for (const event of ['ready', 'close', 'end']) client.on(event, stop);
  return client;
}
