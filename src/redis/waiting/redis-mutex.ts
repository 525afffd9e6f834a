import type { Cluster, Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';

import type { Clock } from '../../common/clock.js';
import type { CallGuard } from '../availability/call-guard.js';
import { BatchedCalls } from './batched-calls.js';
import type { CreateMutex, ElectionMutex } from './window-leader.js';

/**
 * The most elections under way at a time. After an outage, or when all waiters leave, tens of thousands of keys need an
 * election, and nobody waits for its result.
 */
const MAX_UNDER_WAY = 16;

type Guard = Pick<CallGuard, 'run'>;

/** Mutexes of redis-semaphore. None refreshes itself: a term is long enough, or is prolonged when needed. */
export function redisMutexes(commands: Redis | Cluster, guard: Guard, clock: Clock): CreateMutex {
  const elections = new BatchedCalls<() => Promise<void>>({
    clock,
    mostUnderWay: MAX_UNDER_WAY,
    call: ([elect]) => elect(),
  });
  return (name, candidate) =>
    new RedisElectionMutex(commands, name, candidate, (send) => {
      const call = {
        script: 'elect',
        name,
        size: 1,
        isWrite: true,
        // A candidate that has the mutex already does not get it a second time.
        isRepeatable: false,
        send,
      };
      return new Promise((resolve, reject) => {
        elections.add([() => guard.run(call).then(resolve, reject)]);
      });
    });
}

type Run = <Reply>(send: () => Promise<Reply>) => Promise<Reply>;

/** A `Mutex` of redis-semaphore has one time-out for its whole life, so each term has a `Mutex` of its own. */
class RedisElectionMutex implements ElectionMutex {
  #acquired: Mutex | undefined;

  constructor(
    private readonly commands: Redis | Cluster,
    private readonly name: string,
    private readonly candidate: string,
    private readonly run: Run,
  ) {}

  tryAcquire(millis: number): Promise<boolean> {
    return this.#take(this.#mutex(millis));
  }

  prolong(millis: number): Promise<boolean> {
    return this.#take(this.#mutex(millis, { acquiredExternally: true }));
  }

  async release(): Promise<void> {
    const acquired = this.#acquired;
    if (acquired) await this.run(() => acquired.release());
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
    const isTaken = await this.run(() => mutex.tryAcquire());
    if (isTaken) this.#acquired = mutex;
    return isTaken;
  }
}
