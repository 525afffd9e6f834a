import { randomUUID } from 'node:crypto';

import type { Redis } from 'ioredis';

import type { RedisForTests } from './use-redis.js';

/** Records what is published on a channel. */
export interface WakeRecorder {
  /** Everything published since the last call, or since the start. */
  take(): Promise<string[]>;
  /** The same, parsed. */
  read(): Promise<Record<string, unknown>[]>;
}

/**
 * Recorders for the tests of a file. Each ends with its test. The returned function takes a channel, subscribes
 * on a connection of its own, and resolves when Redis has confirmed the subscription.
 */
export function useWakeRecorder(redis: RedisForTests): (channel: string) => Promise<WakeRecorder> {
  const subscribers: Redis[] = [];
  afterEach(() => {
    for (const subscriber of subscribers.splice(0)) subscriber.disconnect();
  });
  return (channel) => {
    const subscriber = redis.client.duplicate();
    subscribers.push(subscriber);
    return record(redis.client, subscriber, channel);
  };
}

async function record(client: Redis, subscriber: Redis, channel: string): Promise<WakeRecorder> {
  let messages: string[] = [];
  let onMessage: () => void = () => undefined;
  subscriber.on('message', (_channel, message) => {
    messages.push(message);
    onMessage();
  });
  await subscriber.subscribe(channel);
  const take = async (): Promise<string[]> => {
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
  };
  return {
    take,
    read: async () => (await take()).map((text) => JSON.parse(text) as Record<string, unknown>),
  };
}
