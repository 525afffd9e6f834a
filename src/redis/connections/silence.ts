import { setImmediate as nextTick } from 'node:timers/promises';

import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

import { HEARTBEAT_MILLIS } from '../shared/losses.js';
import { runningTime, TimeoutError, withinDeadline } from '../../common/deadline.js';

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

/**
 * Pings a connection at regular intervals, and renews it if it is dead. A connection that only receives can be dead for
 * a long time before anybody notices.
 */
export class Heartbeat {
  readonly #timer: NodeJS.Timeout;
  #isAnswering = true;

  /** @param isNeeded whether anybody relies on the connection */
  constructor(
    readonly client: Redis,
    private readonly timeoutMillis: number,
    private readonly isNeeded: () => boolean,
    private readonly logger: Logger,
  ) {
    client.on('ready', () => {
      this.#isAnswering = true;
    });
    this.#timer = setInterval(() => void this.#beat(), HEARTBEAT_MILLIS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #beat(): Promise<void> {
    if (this.client.status !== 'ready' || !this.#isAnswering || !this.isNeeded()) return;
    this.#isAnswering = false;
    try {
      await withinDeadline(this.client.ping(), this.timeoutMillis);
    } catch (error) {
      // Any other error is also an answer, or the connection broke and will be made again.
      if (error instanceof TimeoutError && (await isDead(this.client, this.timeoutMillis))) {
        this.logger.warn('subscriber does not answer; reconnecting');
        this.client.disconnect(true);
      }
    } finally {
      this.#isAnswering = true;
    }
  }
}
