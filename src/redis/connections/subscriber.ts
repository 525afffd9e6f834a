/** The events of subscriptions. */
export interface SubscriberEvents {
  /** A subscription was made, or made again. Messages before it may be lost. Later ones arrive. */
  onSubscribed(channel: string): void;
  onMessage(channel: string, message: string): void;
}

/**
 * Subscriptions that are made again when their connection is. Messages are hints, and may be lost. Each
 * listener gets all events.
 */
export interface Subscriber {
  listen(events: SubscriberEvents): void;
  subscribe(channel: string): void;
  unsubscribe(channel: string): void;
}
