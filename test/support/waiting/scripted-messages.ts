import type { Subscriber, SubscriberEvents } from '../../../src/redis/connections/connections.js';
import type { Wake, WakeMessages } from '../../../src/redis/waiting/wake-channel.js';

/** A pub/sub whose subscriptions and messages the test controls. */
export class ScriptedMessages implements WakeMessages {
  /** The currently requested channels. */
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

  /** Confirms a subscription, also a repeated one. */
  confirm(channel: string): void {
    this.#events?.onSubscribed(channel);
  }

  /** @param message a text, or a value that is sent as JSON */
  say(channel: string, message: unknown): void {
    const text = typeof message === 'string' ? message : JSON.stringify(message);
    this.#events?.onMessage(channel, text);
  }

  /** Defaults of a wake: the first, there is room in a second, and there are no waiters and approvals. */
  wake(channel: string, { used = 1, ...wake }: Partial<Wake> = {}): void {
    const news = { at: 0, number: 1, limits: '1000:1:5', approved: used };
    this.say(channel, { ...news, millisToRoom: 1000, waiting: 0, granted: [], ...wake });
  }
}
