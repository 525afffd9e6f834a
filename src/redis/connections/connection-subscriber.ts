import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

import { Heartbeat } from './silence.js';
import type { Subscriber, SubscriberEvents } from './connections.js';

/** All subscriptions on one connection. */
export class ConnectionSubscriber implements Subscriber {
  readonly #channels = new Set<string>();
  readonly #heartbeat: Heartbeat;
  readonly #listeners: SubscriberEvents[] = [];

  constructor(
    private readonly client: Redis,
    timeoutMillis: number,
    private readonly logger: Logger,
  ) {
    client.on('message', (channel: string, message: string) => {
      for (const listener of this.#listeners) listener.onMessage(channel, message);
    });
    client.on('ready', () => void this.#subscribe([...this.#channels]));
    const isNeeded = (): boolean => this.#channels.size > 0;
    this.#heartbeat = new Heartbeat(client, timeoutMillis, isNeeded, logger);
  }

  listen(events: SubscriberEvents): void {
    this.#listeners.push(events);
  }

  subscribe(channel: string): void {
    this.#channels.add(channel);
    void this.#subscribe([channel]);
  }

  unsubscribe(channel: string): void {
    this.#channels.delete(channel);
    if (this.client.status !== 'ready') return;
    this.client
      .unsubscribe(channel)
      .catch((error: unknown) => this.logger.debug({ err: error, channel }, 'unsubscribe failed'));
  }

  close(): void {
    this.#heartbeat.stop();
  }

  async #subscribe(channels: readonly string[]): Promise<void> {
    // Without a connection nothing is lost: `ready` subscribes to all channels again.
    if (channels.length === 0 || this.client.status !== 'ready') return;
    try {
      await this.client.subscribe(...channels);
    } catch (error) {
      this.logger.warn({ err: error, channels: channels.length }, 'subscribe failed');
      return;
    }
    for (const channel of channels) {
      if (!this.#channels.has(channel)) continue;
      for (const listener of this.#listeners) listener.onSubscribed(channel);
    }
  }
}
