import type { RedisOptions } from 'ioredis';

import { backoffMillis, LONGEST_BACKOFF_MILLIS } from '../shared/backoff.js';
import type { ConnectionSettings, Credentials, LiveText } from './connection-settings.js';

const FIRST_RETRY_MILLIS = 10;
/** How long a closing connection waits for the other side. */
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
    // A command without an answer fails with its connection. The caller decides whether to send it again.
    maxRetriesPerRequest: 0,
    retryStrategy: reconnectAfter,
    // While Redis loads its data, it estimates when it will be done, in seconds. ioredis would wait for that long.
    maxLoadingRetryTime: LONGEST_BACKOFF_MILLIS,
    ...(tls && { tls }),
  };
}

/** The credentials in the settings, else those in a URL. */
export function credentials(
  settings: Pick<ConnectionSettings, 'username' | 'password'>,
  ofUrl: Credentials,
): Credentials {
  const { username = ofUrl.username, password = ofUrl.password } = settings;
  return {
    ...(username !== undefined && { username: asText(username) }),
    ...(password !== undefined && { password: asText(password) }),
  };
}

/** ioredis treats a live text as a string, and converts it when it sends it. */
function asText(text: string | LiveText): string {
  return text as string;
}
