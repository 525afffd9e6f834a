import type { SubscriberEvents } from '../../src/redis/connections/connections.js';
import { until } from './until.js';

/** The events of a subscriber so far. */
export class SubscriptionRecorder implements SubscriberEvents {
  /** A channel for each subscription. */
  readonly subscribed: string[] = [];
  /** Channel and message. */
  readonly messages: [channel: string, message: string][] = [];

  onSubscribed(channel: string): void {
    this.subscribed.push(channel);
  }

  onMessage(channel: string, message: string): void {
    this.messages.push([channel, message]);
  }

  times(channel: string): number {
    return this.subscribed.filter((subscribed) => subscribed === channel).length;
  }

  /** Resolves when the channel has been subscribed `times` times. */
  async untilSubscribed(channel: string, times = 1): Promise<void> {
    await until(() => this.times(channel) >= times);
  }

  async untilMessage(message: string): Promise<void> {
    await until(() => this.messages.some(([, text]) => text === message));
  }
}
