import { Redis } from 'ioredis';

import { KeyNaming } from '../../dist/redis/shared/key-names.js';

/**
 * The state of one limiter key in Redis: its waiters, and the approvals of each window in their order. It
 * is read from the names in docs/redis-names.md.
 */
export class Account {
  /** The ids approved from the queue, in Redis's order. */
  approvals = [];
  /** Each observed window: its number, its start in ms since 1970, and its approvals. */
  windows = [];
  /** The queue: the request id of each place, in the order of arrival. */
  queue = [];
  /** Redis's time of the last reading, in ms since 1970. */
  readAt = 0;
  #windowOf = new Map();
  #names;
  #windowMillis;
  #client;
  #subscriber;

  /** @param redisUrl the Redis of the key, with `windowMillis`, the length of its windows */
  static async open(redisUrl, key, windowMillis) {
    const account = new Account();
    account.#names = new KeyNaming('sluice:').namesOf(key);
    account.#windowMillis = windowMillis;
    account.#client = new Redis(redisUrl);
    account.#subscriber = new Redis(redisUrl);
    account.#subscriber.on('message', (_channel, message) => {
      const { granted = [] } = JSON.parse(message);
      account.approvals.push(...granted.map((claim) => claim.split('#')[0]));
    });
    await account.#subscriber.subscribe(account.#names.wakeChannel);
    return account;
  }

  /** Reads everything in one transaction. */
  async read() {
    const { state, requests, queue } = this.#names;
    const replies = await this.#client
      .multi()
      .time()
      .hget(state, 'start')
      .smembers(requests)
      .lrange(queue, 0, -1)
      .exec();
    const [time, start, approved, places] = replies.map(([error, reply]) => {
      if (error) throw error;
      return reply;
    });
    this.readAt = Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000);
    this.queue = places.map((place) => /^\d+:(.*)@/.exec(place)[1]);
    if (start !== null) this.#noteWindow(Number(start), approved);
  }

  /** The number of the window in which a request was approved, or undefined. */
  windowOf(id) {
    return this.#windowOf.get(id);
  }

  close() {
    this.#client.disconnect();
    this.#subscriber.disconnect();
  }

  #noteWindow(start, approved) {
    const first = this.windows[0]?.start ?? start;
    const number = 1 + Math.round((start - first) / this.#windowMillis);
    let window = this.windows.at(-1);
    if (window?.number !== number) {
      window = { number, start, approved: 0 };
      this.windows.push(window);
    }
    window.approved = Math.max(window.approved, approved.length);
    for (const id of approved) {
      if (!this.#windowOf.has(id)) this.#windowOf.set(id, number);
    }
  }
}
