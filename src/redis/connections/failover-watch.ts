import { Redis } from 'ioredis';
import type { Logger } from 'pino';

import type { ClientOptions } from './client-options.js';
import { logConnection } from './connection-log.js';
import { ConnectionSubscriber } from './connection-subscriber.js';
import { quit } from './quit.js';
import { limitHandshake } from './silence.js';

/** Its messages begin with the name of the primary that was replaced: https://redis.io/docs/latest/operate/oss_and_stack/management/sentinel/#pubsub-messages */
const SWITCHES = '+switch-master';

/**
 * Listens to sentinels for failovers, since the connection to the old primary breaks later, if at all. The failover
 * detector of ioredis 6.0 ends the process if a sentinel does not answer a repeated subscription.
 */
export class FailoverWatch {
  readonly #clients: readonly Redis[];
  readonly #subscribers: readonly ConnectionSubscriber[];

  /**
   * @param sentinels how to connect to each sentinel
   * @param primary the name by which they know it
   * @param timeoutMillis the longest that a sentinel may take to answer
   * @param onFailover called for each sentinel that announces that there is another primary
   */
  constructor(
    sentinels: readonly ClientOptions[],
    primary: string,
    private readonly timeoutMillis: number,
    onFailover: () => void,
    logger: Logger,
  ) {
    this.#clients = sentinels.map((options) =>
      logConnection(
        limitHandshake(
          new Redis({ ...options, enableReadyCheck: false, autoResubscribe: false }),
          2 * timeoutMillis,
        ),
        'sentinel',
        logger,
      ),
    );
    this.#subscribers = this.#clients.map(
      (client) => new ConnectionSubscriber(client, timeoutMillis, logger),
    );
    for (const subscriber of this.#subscribers) {
      subscriber.listen({
        onMessage: (_channel, message) => {
          if (message.startsWith(`${primary} `)) onFailover();
        },
        // Earlier announcements do not matter: each connection to the primary asks the sentinels for it.
        onSubscribed: () => undefined,
      });
      subscriber.subscribe(SWITCHES);
    }
  }

  async close(): Promise<void> {
    for (const subscriber of this.#subscribers) subscriber.close();
    await Promise.all(this.#clients.map((client) => quit(client, 2 * this.timeoutMillis)));
  }
}
