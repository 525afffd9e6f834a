import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { z } from 'zod';

/** What `publish_wake` in `lua/lib/limiter.lua` sends. */
const wakeSchema = z.object({
  windowEndsInMillis: z.number(),
  waiting: z.number(),
  waitingFrom: z.number(),
  granted: z.array(z.string()),
});

/** What a replica sends that ended the windows of a key, and no longer does. */
const driverResignedSchema = z.object({ driverResigned: z.literal(true) });

/** What `restore_limiter` in `lua/settle.lua` sends. */
const memoryLostSchema = z.object({ memoryLost: z.literal(true) });

const messageSchema = z.union([wakeSchema, driverResignedSchema, memoryLostSchema]);

export type Wake = z.infer<typeof wakeSchema>;

export interface WakeListener {
  /** From now on no message is missed; one may have been before. */
  onSubscribed(): void;
  onWake(wake: Wake): void;
  onDriverResigned(): void;
  /** Redis has lost the key, and with it the queue. */
  onMemoryLost(): void;
}

/**
 * The pub/sub channels of the keys this replica holds waiters of. Messages are hints: whatever is
 * lost here is made good by `onSubscribed` and by the timers of those who listen.
 */
export class WakeChannel {
  readonly #listeners = new Map<string, WakeListener>();

  constructor(
    private readonly subscriber: Redis,
    private readonly commands: Redis,
    private readonly logger: Logger,
  ) {
    subscriber.on('message', (channel: string, text: string) => {
      this.#receive(channel, text);
    });
    subscriber.on('ready', () => {
      void this.#subscribe([...this.#listeners.keys()]);
    });
  }

  listen(channel: string, listener: WakeListener): void {
    this.#listeners.set(channel, listener);
    void this.#subscribe([channel]);
  }

  /** Does nothing where another listener has taken the channel meanwhile. */
  unlisten(channel: string, listener: WakeListener): void {
    if (this.#listeners.get(channel) !== listener) return;
    this.#listeners.delete(channel);
    if (this.subscriber.status !== 'ready') return;
    this.subscriber.unsubscribe(channel).catch((error: unknown) => {
      this.logger.debug({ err: error, channel }, 'unsubscribe failed');
    });
  }

  /** Tells the other replicas that nobody ends the windows of this key on time any more. */
  async announceResignation(channel: string): Promise<void> {
    try {
      await this.commands.publish(channel, JSON.stringify({ driverResigned: true }));
    } catch (error) {
      this.logger.debug({ err: error, channel }, 'resignation not announced');
    }
  }

  async #subscribe(channels: readonly string[]): Promise<void> {
    // Without a connection nothing is lost: `ready` brings the channels here again.
    if (channels.length === 0 || this.subscriber.status !== 'ready') return;
    try {
      await this.subscriber.subscribe(...channels);
    } catch (error) {
      this.logger.warn({ err: error, channels: channels.length }, 'subscribe failed');
      return;
    }
    for (const channel of channels) this.#listeners.get(channel)?.onSubscribed();
  }

  #receive(channel: string, text: string): void {
    const listener = this.#listeners.get(channel);
    if (!listener) return;
    const message = parseMessage(text);
    if (!message) {
      this.logger.warn({ channel }, 'ignored a message that is not ours');
    } else if ('driverResigned' in message) {
      listener.onDriverResigned();
    } else if ('memoryLost' in message) {
      listener.onMemoryLost();
    } else {
      listener.onWake(message);
    }
  }
}

function parseMessage(text: string): z.infer<typeof messageSchema> | undefined {
  try {
    return messageSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
