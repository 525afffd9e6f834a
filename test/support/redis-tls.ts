import type { Authority } from './certificates.js';
import {
  type ClientOptions,
  type RedisProcess,
  type RedisProcessOptions,
  startRedisProcess,
} from './redis-process.js';

export interface RedisUser {
  readonly username: string;
  readonly password: string;
  /** In the form of ACL SETUSER, such as `~sluice:* &sluice:* +@all`. */
  readonly rules: string;
}

export interface RedisTlsOptions extends Pick<RedisProcessOptions, 'sentinel' | 'userRules'> {
  /** If given, every client needs a password. */
  readonly user?: RedisUser;
  /** More lines for its redis.conf. */
  readonly lines?: readonly string[];
  /** The certificates of the tests' own clients, if they are not of this authority. */
  readonly tls?: ClientOptions['tls'];
}

/** The password of the default user, which the tests use, if there is another user. */
const DEFAULT_PASSWORD = 'of-the-default-user';

/** Starts a Redis that accepts only TLS, and only clients with a certificate of `authority`. */
export async function startRedisTls(
  authority: Authority,
  { user, lines = [], tls, ...options }: RedisTlsOptions = {},
): Promise<RedisProcess> {
  const server = await authority.issueServerCertificate();
  const client = await authority.issueClientCertificate('tests');
  return startRedisProcess({
    ...options,
    configure: (port) => [
      'port 0',
      `tls-port ${port}`,
      `tls-cert-file "${server.certFile}"`,
      `tls-key-file "${server.keyFile}"`,
      `tls-ca-cert-file "${authority.caFile}"`,
      'tls-auth-clients yes',
      ...lines,
      ...(user
        ? [
            `requirepass ${DEFAULT_PASSWORD}`,
            `user ${user.username} on >${user.password} ${user.rules}`,
          ]
        : []),
    ],
    client: {
      tls: tls ?? { ca: authority.ca, cert: client.cert, key: client.key },
      ...(user && { password: DEFAULT_PASSWORD }),
    },
  });
}
