import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { TimeoutError, withinDeadline } from '../../common/deadline.js';
import { UnderWay } from '../../common/under-way.js';
import type { StoreCondition } from '../../limiter/limiter.js';
import type { Connections } from '../connections/connections.js';
import { backoffMillis, type StoreObserver } from '../shared/store-observer.js';
import { probeName } from '../shared/key-names.js';
import { classifyFailure } from './store-errors.js';

const FAILURES_TO_OPEN = 3;
const FIRST_PROBE_MILLIS = 50;

export interface BreakerParts {
  readonly clock: Clock;
  /** Asks the shard whether it accepts calls again. @param name a name in Redis that is stored on the shard */
  readonly probe: (name: string) => Promise<unknown>;
  readonly onOpen: (cause: unknown) => void;
  readonly onClose: () => void;
}

/**
 * Knows whether a shard of the store is down. While the shard is down, the breaker is open. Then the shard gets no
 * calls but the breaker's own probes:
 *
 *     closed ──calls fail in a row, or the shard is known to be down──▶ open ──a probe is answered──▶ closed
 */
export class Breaker {
  /** The amount of work that was sent to the shard and is not answered yet. */
  underWay = 0;
  #failures = 0;
  #isOpen = false;
  #probeName = '';
  #probes = 0;
  #isProbing = false;
  #isDisposed = false;
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly parts: BreakerParts) {}

  get isOpen(): boolean {
    return this.#isOpen;
  }

  succeeded(): void {
    this.#failures = 0;
  }

  /** @param name the name in Redis that the call was about */
  failed(name: string, cause: unknown): void {
    this.#failures += 1;
    if (this.#failures >= FAILURES_TO_OPEN) this.open(name, cause);
  }

  /**
   * The shard is known to be down, without a call that failed.
   * @param name a name in Redis that is stored on the shard
   */
  open(name: string, cause: unknown): void {
    if (this.#isDisposed || this.#isOpen) return;
    this.#isOpen = true;
    this.#probeName = name;
    this.#probes = 0;
    this.parts.onOpen(cause);
    this.#probeLater();
  }

  /** Probes now, because the shard may be up again. */
  probeNow(): void {
    if (this.#isOpen) void this.#probe();
  }

  /** Stops the probes. Calls that fail later, such as calls under way now, start no probe. */
  dispose(): void {
    this.#isDisposed = true;
    this.#cancelTimer?.();
    this.#isOpen = false;
  }

  #probeLater(): void {
    this.#probes += 1;
    this.#cancelTimer?.();
    this.#cancelTimer = this.parts.clock.after(
      backoffMillis(this.#probes, FIRST_PROBE_MILLIS),
      () => void this.#probe(),
    );
  }

  async #probe(): Promise<void> {
    if (this.#isProbing) return;
    this.#isProbing = true;
    const isBack = await this.parts.probe(this.#probeName).then(
      () => true,
      () => false,
    );
    this.#isProbing = false;
    if (!this.#isOpen) return;
    if (!isBack) {
      this.#probeLater();
      return;
    }
    this.#cancelTimer?.();
    this.#isOpen = false;
    this.#failures = 0;
    this.parts.onClose();
  }
}

export interface BreakersParts {
  readonly connections: Connections;
  /** The longest a call to Redis may take. */
  readonly timeoutMillis: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observer: StoreObserver;
}

/** A breaker for each shard, so that a shard that is down does not stop calls to the others. */
export class Breakers {
  readonly #breakers = new Map<string, Breaker>();
  readonly #listeners: ((isOpen: boolean) => void)[] = [];
  /** The checks of connections, by shard. */
  readonly #suspected = new UnderWay<void>();
  /** By shard. One that does not reply gets no second probe, since probes would pile up. */
  readonly #probes = new UnderWay<unknown>();
  #open = 0;
  #isDisposed = false;

  constructor(private readonly parts: BreakersParts) {
    parts.connections.onReady(() => {
      for (const breaker of this.#breakers.values()) breaker.probeNow();
    });
  }

  /** @param listener told when a shard goes down, and when it is up again */
  onChange(listener: (isOpen: boolean) => void): void {
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
   * Tests whether the shard answers and allows writes, as checks need it. Writes nothing.
   * https://redis.io/docs/latest/commands/setrange/
   * @param name a name in Redis that is stored on the shard
   */
  async probe(name: string): Promise<StoreCondition> {
    const { connections, timeoutMillis } = this.parts;
    const shard = connections.shardOf(name);
    try {
      const probe = this.#probes.join(shard, () =>
        connections.commands.setrange(probeName(name), 0, ''),
      );
      await withinDeadline(probe, timeoutMillis);
      return 'ok';
    } catch (error) {
      // Existing keys are still decided.
      if (classifyFailure(error) === 'full') return 'full';
      if (error instanceof TimeoutError) void this.#renewIfDead(shard);
      throw error;
    }
  }

  dispose(): void {
    this.#isDisposed = true;
    for (const breaker of this.#breakers.values()) breaker.dispose();
  }

  #create(shard: string): Breaker {
    const { clock, logger } = this.parts;
    return new Breaker({
      clock,
      probe: (name) => this.probe(name),
      onOpen: (cause) => {
        const reason = cause instanceof Error ? cause.message : cause;
        logger.warn({ shard, reason }, 'store is down; not asked until it is up again');
        if (cause instanceof TimeoutError) void this.#renewIfDead(shard);
        this.#changed(1);
      },
      onClose: () => {
        logger.info({ shard }, 'store is up again');
        this.#changed(-1);
      },
    });
  }

  /** A connection without answers may be dead without TCP noticing it. Or Redis is slow, and works. */
  #renewIfDead(shard: string): Promise<void> {
    return this.#suspected.join(shard, () => this.parts.connections.renewIfDead(shard));
  }

  #changed(by: 1 | -1): void {
    this.#open += by;
    this.parts.observer.breakersOpen(this.#open);
    for (const listener of this.#listeners) listener(by === 1);
  }
}
