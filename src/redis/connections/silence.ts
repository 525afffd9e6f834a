import { setTimeout as delay } from 'node:timers/promises';

import type { Redis } from 'ioredis';

import { withinDeadline } from '../availability/deadline.js';

/**
 * Whether a connection is useless: nothing arrives on it although commands are under way, while another connection to
 * the same server is answered. If the other is not answered either, the server stalls. After the stall it runs what it
 * was sent, in order, so that the connection is worth keeping.
 */
export async function isDead(client: Redis, timeoutMillis: number): Promise<boolean> {
  if (client.status !== 'ready' || client.commandQueue.length === 0) return false;
  const { stream } = client;
  const { bytesRead } = stream;
  const other = client.duplicate({ lazyConnect: true, retryStrategy: () => null });
  // The kind of failure does not matter.
  other.on('error', () => undefined);
  try {
    await withinDeadline(other.connect(), 2 * timeoutMillis);
    // Replies that are late on their way arrive in this time.
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
 * Ends each handshake in which nothing arrives for this time. Commands have no time limit here: their callers have one,
 * and a reply is awaited as long as its connection exists.
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
