import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

import { TimeoutError, withinDeadline } from '../../common/deadline.js';
import { isDead } from './silence.js';

const HEARTBEAT_MILLIS = 2000;

/**
 * Pings a connection at regular intervals, and renews it if it is dead. A connection that only receives can be dead for
 * a long time before anybody notices.
 */
export class Heartbeat {
  readonly #timer: NodeJS.Timeout;
  #isAnswering = true;

  /** @param isNeeded whether anybody relies on the connection */
  constructor(
    private readonly client: Redis,
    private readonly timeoutMillis: number,
    private readonly isNeeded: () => boolean,
    private readonly logger: Logger,
  ) {
    client.on('ready', () => {
      this.#isAnswering = true;
    });
    this.#timer = setInterval(() => void this.#beat(), HEARTBEAT_MILLIS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #beat(): Promise<void> {
    if (this.client.status !== 'ready' || !this.#isAnswering || !this.isNeeded()) return;
    this.#isAnswering = false;
    try {
      await withinDeadline(this.client.ping(), this.timeoutMillis);
    } catch (error) {
      // Any other error is also an answer, or the connection broke and will be made again.
      if (error instanceof TimeoutError && (await isDead(this.client, this.timeoutMillis))) {
        this.logger.warn('subscriber does not answer; reconnecting');
        this.client.disconnect(true);
      }
    } finally {
      this.#isAnswering = true;
    }
  }
}
