import type { Cluster, Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';

import type { CreateMutex, ElectionMutex } from './window-leader.js';

/** Mutexes of redis-semaphore. None refreshes itself: a term is long enough, or is prolonged when it is needed. */
export function redisMutexes(commands: Redis | Cluster): CreateMutex {
  return (name, candidate) => new RedisElectionMutex(commands, name, candidate);
}

/** redis-semaphore has one time-out for the life of a `Mutex`, so each term has a `Mutex` of its own. */
class RedisElectionMutex implements ElectionMutex {
  #held: Mutex | undefined;

  constructor(
    private readonly commands: Redis | Cluster,
    private readonly name: string,
    private readonly candidate: string,
  ) {}

  tryAcquire(millis: number): Promise<boolean> {
    return this.#take(this.#mutex(millis));
  }

  prolong(millis: number): Promise<boolean> {
    return this.#take(this.#mutex(millis, { acquiredExternally: true }));
  }

  async release(): Promise<void> {
    await this.#held?.release();
  }

  #mutex(millis: number, options: { readonly acquiredExternally?: true } = {}): Mutex {
    return new Mutex(this.commands, this.name, {
      identifier: this.candidate,
      lockTimeout: Math.ceil(millis),
      refreshInterval: 0,
      acquireAttemptsLimit: 1,
      retryInterval: 1,
      ...options,
    });
  }

  async #take(mutex: Mutex): Promise<boolean> {
    const isTaken = await mutex.tryAcquire();
    if (isTaken) this.#held = mutex;
    return isTaken;
  }
}
