import type { Cluster, Redis } from 'ioredis';
import type { Logger } from 'pino';
import { Mutex } from 'redis-semaphore';

import type { Clock } from '../../common/clock.js';
import type { CallGuard } from '../availability/call-guard.js';
import { BatchedCalls } from './batched-calls.js';

/**
 * How long a term lasts after the end of the window for which it begins. A dead leader prevents others from leading
 * for as long. Followers end the windows meanwhile.
 */
const TERM_AFTER_WINDOW_MILLIS = 10_000;
/** A term that ends sooner than this after the end of a window is prolonged, since a leader may be late by as much. */
const LEAST_AFTER_WINDOW_MILLIS = 1_000;

/** What the election needs of a mutex. */
export interface ElectionMutex {
  /**
   * @param millis how long it lasts, unless it is prolonged
   * @returns false if another holds it
   */
  tryAcquire(millis: number): Promise<boolean>;
  /**
   * Holds the mutex for this time from now on.
   * @returns false if this replica has lost it
   */
  prolong(millis: number): Promise<boolean>;
  release(): Promise<void>;
}

/**
 * @param name the name of the mutex in Redis
 * @param candidate the name of its holder; unique among all candidates
 */
export type CreateMutex = (name: string, candidate: string) => ElectionMutex;

export interface WindowLeaderParts {
  readonly mutex: ElectionMutex;
  /** Tells the other candidates that nobody leads. */
  readonly announce: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * A candidate for window leader of a key. The leader settles at the end of each window on time, which spares
 * Redis the calls of all other replicas. Nothing depends on it: the timers of the others do the same a little later.
 *
 * A term lasts beyond the end of the window in which it begins. So the leader of a long window makes no calls before
 * that end, and the leader of short windows prolongs its term once in many windows.
 */
export class WindowLeader {
  #attempts = Promise.resolve();
  /** By the clock; never later than in Redis. */
  #termEndsAt = -Infinity;
  #hasResigned = false;

  constructor(private readonly parts: WindowLeaderParts) {}

  get isLeading(): boolean {
    return this.#isElected && !this.#hasResigned;
  }

  /** Whether it leads, but its term ends before the window that ends at `windowEndsAt`. */
  needsTime(windowEndsAt: number): boolean {
    return this.isLeading && this.#termEndsAt < windowEndsAt + LEAST_AFTER_WINDOW_MILLIS;
  }

  /** Tries to lead until after the end of the window, unless there is another leader. */
  volunteer(windowEndsAt: number): Promise<void> {
    this.#attempts = this.#attempts.then(() => this.#tryToLead(windowEndsAt));
    return this.#attempts;
  }

  /**
   * Stops leading and volunteering. Resolves when the mutex is free and the others know it.
   * @param othersMayWait whether waiters of other replicas may need a leader
   */
  async resign(othersMayWait: boolean): Promise<void> {
    this.#hasResigned = true;
    await this.#attempts;
    const wasLeading = this.#isElected;
    try {
      await this.parts.mutex.release();
    } catch (error) {
      this.parts.logger.debug({ err: error }, 'window leader not released; its mutex will expire');
      return;
    }
    if (wasLeading && othersMayWait) await this.parts.announce();
  }

  get #isElected(): boolean {
    return this.parts.clock.now() < this.#termEndsAt;
  }

  async #tryToLead(windowEndsAt: number): Promise<void> {
    if (this.#hasResigned || (this.isLeading && !this.needsTime(windowEndsAt))) return;
    const { clock, mutex, logger } = this.parts;
    const now = clock.now();
    const millis = Math.max(0, windowEndsAt - now) + TERM_AFTER_WINDOW_MILLIS;
    try {
      const leads =
        (this.isLeading && (await mutex.prolong(millis))) || (await mutex.tryAcquire(millis));
      this.#termEndsAt = leads ? now + millis : -Infinity;
    } catch (error) {
      logger.debug({ err: error }, 'no window leader elected');
    }
  }
}

/**
 * The most elections under way at a time. After an outage, or when all waiters leave, tens of thousands of keys need an
 * election, and nobody waits for its result.
 */
const MAX_UNDER_WAY = 16;

/**
 * Mutexes of redis-semaphore. None refreshes itself: a term is long enough, or is prolonged when needed. A `Mutex` has one
 * time-out for its whole life, so each term has a `Mutex` of its own.
 */
export function redisMutexes(
  commands: Redis | Cluster,
  guard: Pick<CallGuard, 'run'>,
  clock: Clock,
): CreateMutex {
  const elections = new BatchedCalls<() => Promise<void>>({
    clock,
    mostUnderWay: MAX_UNDER_WAY,
    call: ([elect]) => elect(),
  });
  return (name, identifier) => {
    const run = <Reply>(send: () => Promise<Reply>): Promise<Reply> => {
      const call = {
        script: 'elect',
        name,
        size: 1,
        isWrite: true,
        // A candidate that has the mutex already does not get it a second time.
        isRepeatable: false,
        send,
      };
      return new Promise((resolve, reject) =>
        elections.add([() => guard.run(call).then(resolve, reject)]),
      );
    };
    let acquired: Mutex | undefined;
    const take = async (millis: number, acquiredExternally?: true): Promise<boolean> => {
      const mutex = new Mutex(commands, name, {
        identifier,
        lockTimeout: Math.ceil(millis),
        refreshInterval: 0,
        acquireAttemptsLimit: 1,
        retryInterval: 1,
        ...(acquiredExternally && { acquiredExternally }),
      });
      const isTaken = await run(() => mutex.tryAcquire());
      if (isTaken) acquired = mutex;
      return isTaken;
    };
    return {
      tryAcquire: (millis) => take(millis),
      prolong: (millis) => take(millis, true),
      release: async () => {
        const mutex = acquired;
        if (mutex) await run(() => mutex.release());
      },
    };
  };
}
