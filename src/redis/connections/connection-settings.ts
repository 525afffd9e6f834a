/** What the certificate checks and the handshake of a TLS connection need, in PEM. */
export interface TlsSettings {
  /** Trusted instead of the well-known authorities. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name that every server's certificate must show, where servers are known by their addresses. */
  readonly servername?: string | undefined;
}

/** Where Redis is, and how to be let in. */
export interface ConnectionSettings {
  readonly mode: 'standalone' | 'sentinel' | 'cluster';
  /**
   * `redis://` or `rediss://`: one Redis, or sentinels, or nodes of a cluster. What they say of users
   * and passwords is for the servers they name.
   */
  readonly urls: readonly string[];
  /** The name by which sentinels know the primary. */
  readonly sentinelMaster?: string | undefined;
  /** For Redis; wins over what URLs say. */
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** For the sentinels; wins over what URLs say. */
  readonly sentinelUsername?: string | undefined;
  readonly sentinelPassword?: string | undefined;
  readonly database: number;
  /** Where the URLs start with `rediss://`; for sentinels and servers alike. */
  readonly tls?: TlsSettings | undefined;
  /** The longest a call to Redis may take. */
  readonly timeoutMillis: number;
  /** Shown by CLIENT LIST. */
  readonly name: string;
}

/** Where a Redis listens that does not say so. */
export const REDIS_PORT = 6379;

/** Credentials as a URL has them, percent-decoded. */
export function credentialsIn(url: URL): { username?: string; password?: string } {
  return {
    ...(url.username !== '' && { username: decodeURIComponent(url.username) }),
    ...(url.password !== '' && { password: decodeURIComponent(url.password) }),
  };
}

/** Of several servers: what the first that has a password says goes for all, found later ones included. */
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
