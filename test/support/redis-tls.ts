import type { Authority } from './certificates.js';
import { type RedisProcess, startRedisProcess } from './redis-process.js';

export interface RedisUser {
  readonly username: string;
  readonly password: string;
  /** As ACL SETUSER takes them, such as `~sluice:* &sluice:* +@all`. */
  readonly rules: string;
}

/** Of the user that the tests themselves are, where there is another. */
const DEFAULT_PASSWORD = 'of-the-default-user';

/**
 * Starts a Redis that speaks TLS only, and only with clients that show a certificate of `authority`.
 * @param user where given, nobody gets in without a password
 */
export async function startRedisTls(authority: Authority, user?: RedisUser): Promise<RedisProcess> {
  const server = await authority.issueServerCertificate();
  const client = await authority.issueClientCertificate('tests');
  return startRedisProcess({
    configure: (port) => [
      'port 0',
      `tls-port ${port}`,
      `tls-cert-file "${server.certFile}"`,
      `tls-key-file "${server.keyFile}"`,
      `tls-ca-cert-file "${authority.caFile}"`,
      'tls-auth-clients yes',
      ...(user
        ? [
            `requirepass ${DEFAULT_PASSWORD}`,
            `user ${user.username} on >${user.password} ${user.rules}`,
          ]
        : []),
    ],
    client: {
      tls: { ca: authority.ca, cert: client.cert, key: client.key },
      ...(user && { password: DEFAULT_PASSWORD }),
    },
  });
}
