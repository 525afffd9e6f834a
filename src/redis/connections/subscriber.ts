/** What becomes of subscriptions. */
export interface SubscriberEvents {
  /** A subscription was made, or made again: from now on no message is missed; one may have been. */
  onSubscribed(channel: string): void;
  onMessage(channel: string, message: string): void;
}

/**
 * Subscriptions that are made again whenever their connection is. Messages are hints, and may be lost.
 * There is one listener to all of it.
 */
export interface Subscriber {
  listen(events: SubscriberEvents): void;
  subscribe(channel: string): void;
  unsubscribe(channel: string): void;
}
