import type { RedisOptions } from 'ioredis';

import { backoffMillis } from '../backoff.js';
import type { ConnectionSettings } from './connection-settings.js';

const FIRST_RETRY_MILLIS = 10;
/** How long a connection that is being left may still say something. */
const FAREWELL_MILLIS = 100;

/** The options of ioredis that are used here. */
export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

export function reconnectAfter(attempt: number): number {
  return backoffMillis(attempt, FIRST_RETRY_MILLIS);
}

/** What all connections have in common, to servers and to sentinels. */
export function clientOptions(settings: ConnectionSettings): ClientOptions {
  const { timeoutMillis, name, tls } = settings;
  return {
    connectionName: name,
    connectTimeout: timeoutMillis,
    // Calls have time limits of their own; this one ends handshakes that get no answer, and calls that
    // nobody waits for any more.
    commandTimeout: 2 * timeoutMillis,
    disconnectTimeout: FAREWELL_MILLIS,
    enableOfflineQueue: false,
    // What was sent and not answered fails with its connection: whether to send it again is decided by
    // those who know what it does.
    maxRetriesPerRequest: 0,
    retryStrategy: reconnectAfter,
    ...(tls && { tls: definedOf(tls) }),
  };
}

/** Credentials of the settings, else those of a URL. */
export function credentials(
  settings: ConnectionSettings,
  ofUrl: { username?: string; password?: string },
): { username?: string; password?: string } {
  const { username = ofUrl.username, password = ofUrl.password } = settings;
  return definedOf({ username, password });
}

function definedOf<T extends object>(object: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: NonNullable<T[K]>;
  };
}
