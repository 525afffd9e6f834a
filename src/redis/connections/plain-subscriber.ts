import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

import type { Subscriber, SubscriberEvents } from './subscriber.js';

/** A connection on which nothing is sent can be dead for long before anybody knows. */
const HEARTBEAT_MILLIS = 2000;

/** All subscriptions on one connection. */
export class PlainSubscriber implements Subscriber {
  readonly #channels = new Set<string>();
  readonly #heartbeat: NodeJS.Timeout;
  #events: SubscriberEvents | undefined;
  #isAnswering = true;

  constructor(
    private readonly client: Redis,
    private readonly timeoutMillis: number,
    private readonly logger: Logger,
  ) {
    client.on('message', (channel: string, message: string) => {
      this.#events?.onMessage(channel, message);
    });
    client.on('ready', () => {
      this.#isAnswering = true;
      void this.#subscribe([...this.#channels]);
    });
    this.#heartbeat = setInterval(() => void this.#beat(), HEARTBEAT_MILLIS).unref();
  }

  listen(events: SubscriberEvents): void {
    this.#events = events;
  }

  subscribe(channel: string): void {
    this.#channels.add(channel);
    void this.#subscribe([channel]);
  }

  unsubscribe(channel: string): void {
    this.#channels.delete(channel);
    if (this.client.status !== 'ready') return;
    this.client.unsubscribe(channel).catch((error: unknown) => {
      this.logger.debug({ err: error, channel }, 'unsubscribe failed');
    });
  }

  close(): void {
    clearInterval(this.#heartbeat);
  }

  async #subscribe(channels: readonly string[]): Promise<void> {
    // Without a connection nothing is lost: `ready` brings the channels here again.
    if (channels.length === 0 || this.client.status !== 'ready') return;
    try {
      await this.client.subscribe(...channels);
    } catch (error) {
      this.logger.warn({ err: error, channels: channels.length }, 'subscribe failed');
      return;
    }
    for (const channel of channels) {
      if (this.#channels.has(channel)) this.#events?.onSubscribed(channel);
    }
  }

  async #beat(): Promise<void> {
    if (this.#channels.size === 0 || this.client.status !== 'ready' || !this.#isAnswering) return;
    this.#isAnswering = false;
    const timer = setTimeout(() => {
      this.logger.warn('subscriber does not answer; connecting anew');
      this.client.disconnect(true);
    }, this.timeoutMillis);
    try {
      await this.client.ping();
    } catch {
      // An error is an answer, too; or the connection is gone, and will be made again.
    } finally {
      this.#isAnswering = true;
      clearTimeout(timer);
    }
  }
}
