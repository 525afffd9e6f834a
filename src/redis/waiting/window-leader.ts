import type { Logger } from 'pino';

/** A mutex, as far as the election needs it. */
export interface ElectionMutex {
  /** As far as is known here. */
  readonly isAcquired: boolean;
  /** @returns false where another holds it */
  tryAcquire(): Promise<boolean>;
  release(): Promise<void>;
}

/**
 * @param name the name of the mutex in Redis
 * @param candidate the name of its holder; unique among all candidates
 */
export type CreateMutex = (name: string, candidate: string) => ElectionMutex;

/**
 * A candidate for window leader of a key. The leader settles at the end of each window on time, which spares
 * Redis the calls of all other replicas. Nothing depends on it: their timers do the same a little later.
 */
export class WindowLeader {
  #attempts = Promise.resolve();
  #hasResigned = false;

  /** @param announce tells the other candidates that nobody leads */
  constructor(
    private readonly mutex: ElectionMutex,
    private readonly announce: () => Promise<void>,
    private readonly logger: Logger,
  ) {}

  get isLeading(): boolean {
    return this.mutex.isAcquired && !this.#hasResigned;
  }

  /** Becomes the leader if there is none. Tries even after an attempt under way: it may be too early. */
  volunteer(): Promise<void> {
    this.#attempts = this.#attempts.then(() => this.#tryAcquire());
    return this.#attempts;
  }

  /**
   * Leads no more, and volunteers no more. Resolves when the mutex is free, and the others know it.
   * @param othersMayWait whether waiters of other replicas may need a leader
   */
  async resign(othersMayWait: boolean): Promise<void> {
    this.#hasResigned = true;
    await this.#attempts;
    const wasLeading = this.mutex.isAcquired;
    try {
      await this.mutex.release();
    } catch (error) {
      this.logger.debug({ err: error }, 'window leader not released; its mutex will run out');
      return;
    }
    if (wasLeading && othersMayWait) await this.announce();
  }

  async #tryAcquire(): Promise<void> {
    if (this.isLeading || this.#hasResigned) return;
    try {
      await this.mutex.tryAcquire();
    } catch (error) {
      this.logger.debug({ err: error }, 'no window leader elected');
    }
  }
}
