import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';

/**
 * How long a term goes on after the end of the window for which it begins. A dead leader keeps others from leading
 * for as long. Followers end its windows meanwhile.
 */
const TERM_AFTER_WINDOW_MILLIS = 10_000;
/** A term that ends sooner after the end of a window than this is prolonged. A leader may be late by as much. */
const LEAST_AFTER_WINDOW_MILLIS = 1_000;

/** A mutex, as far as the election needs it. */
export interface ElectionMutex {
  /**
   * @param millis how long it is held, unless it is prolonged
   * @returns false where another holds it
   */
  tryAcquire(millis: number): Promise<boolean>;
  /**
   * Holds it for as long from now on.
   * @returns false where it is not held any more
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
 * Redis the calls of all other replicas. Nothing depends on it: their timers do the same a little later.
 *
 * A term goes beyond the end of the window in which it begins. So the leader of a long window asks nothing of
 * Redis before that end, and the leader of short ones prolongs its term once in many.
 */
export class WindowLeader {
  #attempts = Promise.resolve();
  /** By the clock's milliseconds; never later than in Redis. */
  #termEndsAt = -Infinity;
  #hasResigned = false;

  constructor(private readonly parts: WindowLeaderParts) {}

  get isLeading(): boolean {
    return this.#isElected && !this.#hasResigned;
  }

  /** Whether it leads, and will not do so until the window has ended that ends then. */
  needsTime(windowEndsAt: number): boolean {
    return this.isLeading && this.#termEndsAt < windowEndsAt + LEAST_AFTER_WINDOW_MILLIS;
  }

  /** Leads until after the end of the window, if there is no other leader. */
  volunteer(windowEndsAt: number): Promise<void> {
    this.#attempts = this.#attempts.then(() => this.#tryToLead(windowEndsAt));
    return this.#attempts;
  }

  /**
   * Leads no more, and volunteers no more. Resolves when the mutex is free, and the others know it.
   * @param othersMayWait whether waiters of other replicas may need a leader
   */
  async resign(othersMayWait: boolean): Promise<void> {
    this.#hasResigned = true;
    await this.#attempts;
    const wasLeading = this.#isElected;
    try {
      await this.parts.mutex.release();
    } catch (error) {
      this.parts.logger.debug({ err: error }, 'window leader not released; its mutex will run out');
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
