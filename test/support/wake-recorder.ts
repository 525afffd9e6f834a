import { randomUUID } from 'node:crypto';

import type { Redis } from 'ioredis';

/** Records what is published on a channel. */
export interface WakeRecorder {
  /** Everything published since the last call, or since the start. */
  take(): Promise<string[]>;
  stop(): void;
}

/** Subscribes with a connection of its own; resolves when Redis has confirmed it. */
export async function recordWakes(client: Redis, channel: string): Promise<WakeRecorder> {
  // It ends with the Redis of its file, also where a test fails before it stops it.
  const subscriber = client.duplicate({ retryStrategy: () => null });
  let messages: string[] = [];
  let onMessage: () => void = () => undefined;
  subscriber.on('message', (_channel, message) => {
    messages.push(message);
    onMessage();
  });
  await subscriber.subscribe(channel);
  return {
    take: async () => {
      // Messages of a channel arrive in order, so those before this one are complete with it.
      const end = `end-${randomUUID()}`;
      const ended = new Promise<void>((resolve) => {
        onMessage = () => {
          if (messages.at(-1) === end) resolve();
        };
      });
      await client.publish(channel, end);
      await ended;
      const taken = messages.slice(0, -1);
      messages = [];
      return taken;
    },
    stop: () => {
      subscriber.disconnect();
    },
  };
}
