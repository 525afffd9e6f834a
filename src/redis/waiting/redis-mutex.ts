import type { Cluster, Redis } from 'ioredis';
import type { Logger } from 'pino';
import { Mutex } from 'redis-semaphore';

import type { CreateMutex } from './window-leader.js';

/** How long a dead leader's mutex keeps others from leading. Followers end its windows meanwhile. */
const LOCK_TIMEOUT_MILLIS = 10_000;
const REFRESH_INTERVAL_MILLIS = 3_000;

/**
 * In redis-semaphore 5.8 a refresh that fails is an unhandled rejection. Here a lock that can't be refreshed
 * counts as lost.
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

/** Mutexes of redis-semaphore, which refreshes those that are acquired. */
export function redisMutexes(commands: Redis | Cluster, logger: Logger): CreateMutex {
  return (name, candidate) =>
    new WatchedMutex(commands, name, {
      identifier: candidate,
      lockTimeout: LOCK_TIMEOUT_MILLIS,
      refreshInterval: REFRESH_INTERVAL_MILLIS,
      acquireAttemptsLimit: 1,
      retryInterval: 1,
      onLockLost: () => {
        logger.debug({ mutex: name }, 'no longer the window leader');
      },
    });
}
