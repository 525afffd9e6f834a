import type { ElectionMutex } from '../../../src/redis/waiting/window-leader.js';
import type { Connection } from './connection.js';

/** The key of redis-semaphore's Mutex in Redis. */
export class LeaderLock {
  #holder: string | undefined;
  #until = 0;

  constructor(private readonly now: () => number) {}

  get holder(): string | undefined {
    return this.now() < this.#until ? this.#holder : undefined;
  }

  acquire(candidate: string, millis: number): boolean {
    if (this.holder !== undefined) return false;
    this.#holder = candidate;
    this.#until = this.now() + millis;
    return true;
  }

  prolong(candidate: string, millis: number): boolean {
    if (this.holder !== candidate) return false;
    this.#until = this.now() + millis;
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

/** A candidate's side of it, as window-leader.ts has it of redis-semaphore's Mutex. */
export class SimulatedMutex implements ElectionMutex {
  #wasAcquired = false;

  constructor(
    private readonly candidate: string,
    private readonly lock: LeaderLock,
    private readonly connection: Connection,
  ) {}

  async tryAcquire(millis: number): Promise<boolean> {
    const isAcquired = await this.connection.ask(`lock for ${this.candidate}`, () =>
      this.lock.acquire(this.candidate, millis),
    );
    if (isAcquired) this.#wasAcquired = true;
    return isAcquired;
  }

  prolong(millis: number): Promise<boolean> {
    return this.connection.ask(`prolong for ${this.candidate}`, () =>
      this.lock.prolong(this.candidate, millis),
    );
  }

  async release(): Promise<void> {
    if (!this.#wasAcquired) return;
    await this.connection.ask(`unlock for ${this.candidate}`, () => {
      this.lock.release(this.candidate);
    });
  }
}
