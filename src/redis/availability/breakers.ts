import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import type { StoreCondition } from '../../limiter/limiter.js';
import type { Connections } from '../connections/connections.js';
import { probeName } from '../key-names.js';
import type { StoreObserver } from '../store-observer.js';
import { Breaker } from './breaker.js';
import { TimeoutError, withinDeadline } from './deadline.js';
import { classifyFailure } from './store-errors.js';

export interface BreakersParts {
  readonly connections: Connections;
  readonly timeoutMillis: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer: StoreObserver;
}

/** A shard of the store went down, or is back. */
export type OnBreakerChange = (isOpen: boolean) => void;

/** A breaker for each shard, so that a shard that is down does not keep others from being asked. */
export class Breakers {
  readonly #breakers = new Map<string, Breaker>();
  readonly #listeners: OnBreakerChange[] = [];
  #open = 0;
  #isDisposed = false;

  constructor(private readonly parts: BreakersParts) {
    parts.connections.onReady(() => {
      for (const breaker of this.#breakers.values()) breaker.probeNow();
    });
  }

  onChange(listener: OnBreakerChange): void {
    this.#listeners.push(listener);
  }

  /** @param name in Redis */
  of(name: string): Breaker {
    const shard = this.parts.connections.shardOf(name);
    let breaker = this.#breakers.get(shard);
    if (!breaker) {
      breaker = this.#create(shard);
      if (this.#isDisposed) breaker.dispose();
      this.#breakers.set(shard, breaker);
    }
    return breaker;
  }

  /**
   * Tests what a check needs: an answer, and the permission to write. It writes nothing.
   * https://redis.io/docs/latest/commands/setrange/
   * @param name a name in Redis that the shard holds
   */
  async probe(name: string): Promise<StoreCondition> {
    const { connections, timeoutMillis } = this.parts;
    try {
      await withinDeadline(connections.commands.setrange(probeName(name), 0, ''), timeoutMillis);
      return 'ok';
    } catch (error) {
      // The keys that are there are decided on.
      if (classifyFailure(error) === 'full') return 'full';
      throw error;
    }
  }

  dispose(): void {
    this.#isDisposed = true;
    for (const breaker of this.#breakers.values()) breaker.dispose();
  }

  #create(shard: string): Breaker {
    const { connections, clock, logger } = this.parts;
    return new Breaker({
      clock,
      probe: (name) => this.probe(name),
      onOpen: (cause) => {
        const reason = cause instanceof Error ? cause.message : cause;
        logger.warn({ shard, reason }, 'store unavailable; not asked until it is back');
        // A connection without answers may be dead, and TCP may not have noticed.
        if (cause instanceof TimeoutError) connections.renew(shard);
        this.#changed(1);
      },
      onClose: () => {
        logger.info({ shard }, 'store available again');
        this.#changed(-1);
      },
    });
  }

  #changed(by: 1 | -1): void {
    this.#open += by;
    this.parts.observer.breakersOpen(this.#open);
    for (const listener of this.#listeners) listener(by === 1);
  }
}
