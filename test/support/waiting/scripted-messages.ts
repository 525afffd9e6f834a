import type { Subscriber, SubscriberEvents } from '../../../src/redis/connections/subscriber.js';
import type { Wake, WakeMessages } from '../../../src/redis/waiting/wake-channel.js';

/** A pub/sub of which the test says what is subscribed, and what is heard. */
export class ScriptedMessages implements WakeMessages {
  /** The channels that are to be listened to now. */
  readonly channels = new Set<string>();
  /** Channels and messages, in their order. */
  readonly published: [channel: string, message: unknown][] = [];
  answerPublish: () => Promise<unknown> = () => Promise.resolve(0);
  #events: SubscriberEvents | undefined;

  readonly subscriber: Subscriber = {
    listen: (events) => {
      this.#events = events;
    },
    subscribe: (channel) => void this.channels.add(channel),
    unsubscribe: (channel) => void this.channels.delete(channel),
  };

  publish(channel: string, message: string): Promise<unknown> {
    this.published.push([channel, JSON.parse(message)]);
    return this.answerPublish();
  }

  /** The subscription is made, or made again. */
  confirm(channel: string): void {
    this.#events?.onSubscribed(channel);
  }

  /** @param message text, or what is to be sent as JSON */
  say(channel: string, message: unknown): void {
    const text = typeof message === 'string' ? message : JSON.stringify(message);
    this.#events?.onMessage(channel, text);
  }

  /** What is left out: there is a second until there is room, and nobody waits or was approved. */
  wake(channel: string, wake: Partial<Wake> = {}): void {
    this.say(channel, { millisToRoom: 1000, waiting: 0, waitingFrom: 0, granted: [], ...wake });
  }
}
