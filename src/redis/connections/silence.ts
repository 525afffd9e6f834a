import { setImmediate as nextTick } from 'node:timers/promises';

import type { Redis } from 'ioredis';

import { withinDeadline } from '../../common/deadline.js';
import { runningTime } from '../../common/running-time.js';

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
    await new Promise<void>((resolve) => runningTime(2 * timeoutMillis, resolve));
    await withinDeadline(other.ping(), timeoutMillis);
    // Replies that arrived together with this one may be read after it.
    await nextTick();
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
  let cancel: (() => void) | undefined;
  const stop = (): void => {
    cancel?.();
    cancel = undefined;
  };
  const watch = (seen: number): void => {
    cancel = runningTime(millis, () => {
      const { bytesRead } = client.stream;
      if (bytesRead === seen && client.status === 'connect') client.disconnect(true);
      else watch(bytesRead);
    });
  };
  client.on('connect', () => {
    stop();
    watch(client.stream.bytesRead);
  });
  for (const event of ['ready', 'close', 'end']) client.on(event, stop);
  return client;
}
