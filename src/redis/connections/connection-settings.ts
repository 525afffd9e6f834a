import type { RedisOptions } from 'ioredis';

import { LONGEST_BACKOFF_MILLIS } from '../shared/losses.js';
import { backoffMillis } from '../shared/store-observer.js';

/**
 * A text that may change. ioredis treats it as a string: it passes the object itself from options to options and from
 * client to client, and converts it whenever it sends it.
 */
export function liveText(read: () => string): string {
  return { toString: read } as string;
}

/** The certificates and names for the handshake of a TLS connection, in PEM. */
export interface TlsSettings {
  /** The authorities to trust instead of Node's own. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name in every server's certificate, if servers are known by their addresses. */
  readonly servername?: string | undefined;
}

/** The addresses of Redis, and the credentials for it. */
export interface ConnectionSettings {
  readonly mode: 'standalone' | 'sentinel' | 'cluster';
  /**
   * `redis://` or `rediss://`: one Redis, or sentinels, or nodes of a cluster. The users and passwords in a URL
   * are for the server that it names.
   */
  readonly urls: readonly string[];
  /** The name by which sentinels know the primary. */
  readonly sentinelMaster?: string | undefined;
  /** For Redis. Overrides the URLs. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** For the sentinels. Overrides the URLs. */
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  readonly database: number;
  /**
   * Present if the URLs start with `rediss://`, for sentinels and servers. Its properties may change: ioredis gets this
   * object itself, and reads it whenever it connects.
   */
  readonly tls?: TlsSettings | undefined;
  /** The longest a call to Redis may take. */
  readonly timeoutMillis: number;
  /** Shown by CLIENT LIST. */
  readonly name: string;
  /** Stops the updates of `tls` and the credentials. Called when the connections are closed. */
  readonly stopWatching?: () => void;
}

/** The port of a URL without one. */
export const REDIS_PORT = 6379;

interface Credentials {
  readonly username?: string;
  readonly password?: string;
}

/** The credentials in a URL, percent-decoded. */
export function credentialsIn(url: URL): Credentials {
  return {
    ...(url.username !== '' && { username: decodeURIComponent(url.username) }),
    ...(url.password !== '' && { password: decodeURIComponent(url.password) }),
  };
}

/** The credentials for all servers, also for servers found later: those in the first URL with a password. */
export function sharedCredentialsIn(urls: readonly URL[]): Credentials {
  return urls.map(credentialsIn).find(({ password }) => password !== undefined) ?? {};
}

/** A host name or address without the brackets that an IPv6 address has in a URL. */
export function addressIn(url: URL, defaultPort: number): { host: string; port: number } {
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? defaultPort : Number(url.port),
  };
}

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
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
  };
}
