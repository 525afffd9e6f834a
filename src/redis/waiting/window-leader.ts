import type { Cluster, Redis } from 'ioredis';
import type { Logger } from 'pino';
import { Mutex } from 'redis-semaphore';

/** How long a dead leader's mutex stands in the way of the next; its windows are ended meanwhile. */
const LOCK_TIMEOUT_MILLIS = 10_000;
const REFRESH_INTERVAL_MILLIS = 3_000;

/**
 * redis-semaphore 5.8 leaves a refresh that fails to the unhandled rejections. Here a lock that
 * can't be refreshed counts as lost.
 */
class WatchedMutex extends Mutex {
  protected override async _refresh(): Promise<boolean> {
    try {
      return await super._refresh();
    } catch {
      return false;
    }
  }
}

/**
 * The election of the one replica that ends the windows of a key on time. It spares Redis the calls
 * of all others; nothing depends on it, since everyone's timer ends the window a little later.
 */
export class WindowLeader {
  readonly #mutex: Mutex;
  #attempts = Promise.resolve();
  #resigned = false;

  /**
   * @param name of the mutex
   * @param candidate who is to be seen as its holder; unique among all candidates
   */
  constructor(
    commands: Redis | Cluster,
    name: string,
    candidate: string,
    private readonly logger: Logger,
  ) {
    this.#mutex = new WatchedMutex(commands, name, {
      identifier: candidate,
      lockTimeout: LOCK_TIMEOUT_MILLIS,
      refreshInterval: REFRESH_INTERVAL_MILLIS,
      acquireAttemptsLimit: 1,
      retryInterval: 1,
      onLockLost: () => {
        logger.debug({ leader: name }, 'no longer the leader');
      },
    });
  }

  get isLeading(): boolean {
    return this.#mutex.isAcquired && !this.#resigned;
  }

  /** Becomes the leader if there is none. An attempt under way may have come too early for that. */
  volunteer(): Promise<void> {
    this.#attempts = this.#attempts.then(() => this.#tryAcquire());
    return this.#attempts;
  }

  /** @returns whether it was the leader, and the place is free now */
  async resign(): Promise<boolean> {
    this.#resigned = true;
    await this.#attempts;
    const wasLeading = this.#mutex.isAcquired;
    try {
      await this.#mutex.release();
    } catch (error) {
      this.logger.debug({ err: error }, 'leader not released; its lock will run out');
    }
    return wasLeading;
  }

  async #tryAcquire(): Promise<void> {
    if (this.isLeading || this.#resigned) return;
    try {
      await this.#mutex.tryAcquire();
    } catch (error) {
      this.logger.debug({ err: error }, 'no leader elected');
    }
  }
}
