import type { RedisOptions } from 'ioredis';

import { backoffMillis, LONGEST_BACKOFF_MILLIS } from '../backoff.js';
import type { ConnectionSettings } from './connection-settings.js';
import type { LiveText } from './live-text.js';

const FIRST_RETRY_MILLIS = 10;
/** How long a closing connection may wait for the other side. */
const FAREWELL_MILLIS = 100;

/** The options of ioredis that are used here. */
export type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

export function reconnectAfter(attempt: number): number {
  return backoffMillis(attempt, FIRST_RETRY_MILLIS);
}

/** The options of all connections, to servers and to sentinels. */
export function clientOptions(settings: ConnectionSettings): ClientOptions {
  const { timeoutMillis, name, tls } = settings;
  return {
    connectionName: name,
    connectTimeout: timeoutMillis,
    disconnectTimeout: FAREWELL_MILLIS,
    enableOfflineQueue: false,
    // A command without an answer fails with its connection. The caller knows whether to send it again.
    maxRetriesPerRequest: 0,
    retryStrategy: reconnectAfter,
    // Else a connection to a Redis that loads its data asks again when Redis thinks that it has, in seconds.
    maxLoadingRetryTime: LONGEST_BACKOFF_MILLIS,
    ...(tls && { tls }),
  };
}

/** The credentials in the settings, else those in a URL. */
export function credentials(
  settings: Pick<ConnectionSettings, 'username' | 'password'>,
  ofUrl: { username?: string; password?: string },
): { username?: string; password?: string } {
  const { username = ofUrl.username, password = ofUrl.password } = settings;
  return {
    ...(username !== undefined && { username: asText(username) }),
    ...(password !== undefined && { password: asText(password) }),
  };
}

/** ioredis takes a live text for a string, and makes one of it when it sends it. */
function asText(text: string | LiveText): string {
  return text as string;
}
