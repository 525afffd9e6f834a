import type { Clock } from '../../src/common/clock.js';
import type { ElectionMutex } from '../../src/redis/waiting/window-leader.js';
import type { Connection } from './connection.js';

/** As src/redis/waiting/redis-mutex.ts has them. */
const LOCK_TIMEOUT_MILLIS = 10_000;
const REFRESH_INTERVAL_MILLIS = 3_000;

/** The key of redis-semaphore's Mutex in Redis. */
export class LeaderLock {
  #holder: string | undefined;
  #until = 0;

  constructor(private readonly now: () => number) {}

  get holder(): string | undefined {
    return this.now() < this.#until ? this.#holder : undefined;
  }

  acquire(candidate: string): boolean {
    if (this.holder !== undefined) return false;
    this.#holder = candidate;
    this.#until = this.now() + LOCK_TIMEOUT_MILLIS;
    return true;
  }

  refresh(candidate: string): boolean {
    if (this.holder !== candidate) return false;
    this.#until = this.now() + LOCK_TIMEOUT_MILLIS;
    return true;
  }

  release(candidate: string): void {
    if (this.holder === candidate) this.forget();
  }

  /** Redis loses its memory. */
  forget(): void {
    this.#holder = undefined;
  }
}

/** A candidate's side of it, as redis-semaphore's Mutex with the options of redis-mutex.ts. */
export class SimulatedMutex implements ElectionMutex {
  #isAcquired = false;
  #cancelRefresh: (() => void) | undefined;

  constructor(
    private readonly candidate: string,
    private readonly lock: LeaderLock,
    private readonly connection: Connection,
    private readonly clock: Clock,
  ) {}

  get isAcquired(): boolean {
    return this.#isAcquired;
  }

  async tryAcquire(): Promise<boolean> {
    const isAcquired = await this.connection.ask(`lock for ${this.candidate}`, () =>
      this.lock.acquire(this.candidate),
    );
    if (!isAcquired) return false;
    this.#isAcquired = true;
    this.#refreshLater();
    return true;
  }

  async release(): Promise<void> {
    this.#cancelRefresh?.();
    if (this.#isAcquired) {
      await this.connection.ask(`unlock for ${this.candidate}`, () => {
        this.lock.release(this.candidate);
      });
    }
    this.#isAcquired = false;
  }

  #refreshLater(): void {
    this.#cancelRefresh?.();
    this.#cancelRefresh = this.clock.after(REFRESH_INTERVAL_MILLIS, () => {
      this.#refreshLater();
      void this.#refresh();
    });
  }

  async #refresh(): Promise<void> {
    let isRefreshed = false;
    try {
      isRefreshed = await this.connection.ask(`refresh for ${this.candidate}`, () =>
        this.lock.refresh(this.candidate),
      );
    } catch {
      // Counts as lost.
    }
    if (isRefreshed || !this.#isAcquired) return;
    this.#isAcquired = false;
    this.#cancelRefresh?.();
  }
}
