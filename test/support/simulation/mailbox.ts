import type { Subscriber, SubscriberEvents } from '../../../src/redis/connections/connections.js';

type Mail =
  { readonly isConfirmation: true } | { readonly isConfirmation: false; readonly text: string };

/** One replica's subscription to the one channel of a world: what was asked of it, and what it has not read yet. */
export class Mailbox implements Subscriber {
  #events: SubscriberEvents | undefined;
  #isWanted = false;
  #isSubscribed = false;
  /** What Redis has not heard yet: to subscribe or not. */
  #asked: boolean[] = [];
  #mail: Mail[] = [];

  constructor(private readonly channel: string) {}

  listen(events: SubscriberEvents): void {
    this.#events = events;
  }

  subscribe(): void {
    this.#isWanted = true;
    this.#asked.push(true);
  }

  unsubscribe(): void {
    this.#isWanted = false;
    this.#asked.push(false);
  }

  get isWanted(): boolean {
    return this.#isWanted;
  }

  get isSubscribed(): boolean {
    return this.#isSubscribed;
  }

  get hasAsked(): boolean {
    return this.#asked.length > 0;
  }

  /** The next mail, in short. */
  get first(): string | undefined {
    const [first] = this.#mail;
    if (!first) return undefined;
    return first.isConfirmation ? 'subscribed' : first.text;
  }

  /** How many messages can be read, dropped or doubled now: none overtakes the confirmation. */
  get readable(): number {
    if (this.#mail[0]?.isConfirmation) return 1;
    const next = this.#mail.findIndex((mail) => mail.isConfirmation);
    return next === -1 ? this.#mail.length : next;
  }

  /** Redis publishes a message. */
  post(text: string): void {
    if (this.#isSubscribed) this.#mail.push({ isConfirmation: false, text });
  }

  /** Redis hears what was asked next. */
  hearAsked(): boolean {
    const asked = this.#asked.shift();
    if (asked === undefined) return false;
    this.#isSubscribed = asked;
    if (asked) this.#mail.push({ isConfirmation: true });
    return true;
  }

  read(index: number): boolean {
    if (index >= this.readable) return false;
    const [mail] = this.#mail.splice(index, 1);
    if (mail!.isConfirmation) {
      if (this.#isWanted) this.#events?.onSubscribed(this.channel);
    } else {
      this.#events?.onMessage(this.channel, mail!.text);
    }
    return true;
  }

  drop(index: number): boolean {
    if (index >= this.readable || this.#mail[index]!.isConfirmation) return false;
    this.#mail.splice(index, 1);
    return true;
  }

  double(index: number): boolean {
    const mail = this.#mail[index];
    if (index >= this.readable || mail!.isConfirmation) return false;
    this.#mail.push(mail!);
    return true;
  }

  /** Its replica dies. */
  close(): void {
    this.#isSubscribed = false;
    this.#mail = [];
    this.#asked = [];
  }

  /** The connection is lost, and what was on it; it is made again, and subscribes what is wanted. */
  reconnect(): boolean {
    if (!this.#isSubscribed) return false;
    this.#isSubscribed = false;
    this.#mail = [];
    this.#asked = this.#isWanted ? [true] : [];
    return true;
  }
}
