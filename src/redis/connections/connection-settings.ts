import type { LiveText } from './live-text.js';

/** The certificates and names for the handshake of a TLS connection, in PEM. */
export interface TlsSettings {
  /** The authorities to trust instead of the well-known ones. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name that every server's certificate must show, where servers are known by their addresses. */
  readonly servername?: string | undefined;
}

/** The addresses of Redis, and the credentials for it. */
export interface ConnectionSettings {
  readonly mode: 'standalone' | 'sentinel' | 'cluster';
  /**
   * `redis://` or `rediss://`: one Redis, or sentinels, or nodes of a cluster. Users and passwords in them
   * are for the servers they name.
   */
  readonly urls: readonly string[];
  /** The name by which sentinels know the primary. */
  readonly sentinelMaster?: string | undefined;
  /** For Redis. It wins over the URLs. */
  readonly username?: string | LiveText | undefined;
  readonly password?: string | LiveText | undefined;
  /** For the sentinels. It wins over the URLs. */
  readonly sentinelUsername?: string | LiveText | undefined;
  readonly sentinelPassword?: string | LiveText | undefined;
  readonly database: number;
  /**
   * Present if the URLs start with `rediss://`; for sentinels and servers alike. Its properties may change: it is
   * given to ioredis as it is, which reads them whenever it connects.
   */
  readonly tls?: TlsSettings | undefined;
  /** The longest a call to Redis may take. */
  readonly timeoutMillis: number;
  /** Shown by CLIENT LIST. */
  readonly name: string;
  /** Lets `tls` and the credentials be as they are from now on; called when the connections are closed. */
  readonly stopWatching?: () => void;
}

/** The port of a URL without one. */
export const REDIS_PORT = 6379;

/** Credentials as a URL has them, percent-decoded. */
export function credentialsIn(url: URL): { username?: string; password?: string } {
  return {
    ...(url.username !== '' && { username: decodeURIComponent(url.username) }),
    ...(url.password !== '' && { password: decodeURIComponent(url.password) }),
  };
}

/** The credentials for all servers, also for those found later: those of the first URL with a password. */
export function sharedCredentialsIn(urls: readonly URL[]): {
  username?: string;
  password?: string;
} {
  return urls.map(credentialsIn).find(({ password }) => password !== undefined) ?? {};
}

/** A host name or address without the brackets that an IPv6 address has in a URL. */
export function addressIn(url: URL, defaultPort: number): { host: string; port: number } {
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? defaultPort : Number(url.port),
  };
}
