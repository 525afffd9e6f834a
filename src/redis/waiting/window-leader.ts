import type { Logger } from 'pino';

/** What the election needs of a mutex. */
export interface ElectionMutex {
  /** As far as is known here. */
  readonly isAcquired: boolean;
  /** @returns false where another holds it */
  tryAcquire(): Promise<boolean>;
  release(): Promise<void>;
}

/**
 * @param name of the mutex in Redis
 * @param candidate who is to be seen as its holder; unique among all candidates
 */
export type CreateMutex = (name: string, candidate: string) => ElectionMutex;

/**
 * A candidate for window leader of a key, who settles at the end of each window on time. That spares
 * Redis the calls of all others; nothing depends on it, since everyone's timer does so a little later.
 */
export class WindowLeader {
  #attempts = Promise.resolve();
  #hasResigned = false;

  /** @param announce tells the other candidates that the place is free */
  constructor(
    private readonly mutex: ElectionMutex,
    private readonly announce: () => Promise<void>,
    private readonly logger: Logger,
  ) {}

  get isLeading(): boolean {
    return this.mutex.isAcquired && !this.#hasResigned;
  }

  /** Becomes the leader if there is none. An attempt under way may have come too early for that. */
  volunteer(): Promise<void> {
    this.#attempts = this.#attempts.then(() => this.#tryAcquire());
    return this.#attempts;
  }

  /**
   * Leads no more, and volunteers no more. Resolves when its place is free, and known to be.
   * @param othersMayWait whether anybody is left to be told
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
