import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { ClientOptions } from '../../../src/redis/connections/connection-settings.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { type Authority, createAuthority } from '../../support/certificates.js';
import { untilWaiting } from '../../support/debug-state.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { freePort } from '../../support/free-port.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import type { RedisProcess } from '../../support/redis-process.js';
import { startRedisTls } from '../../support/redis-tls.js';
import { LIMITER_USER, limiterRules, rulesIn } from '../../support/redis-user.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

type Tls = NonNullable<ClientOptions['tls']>;

/** One primary with TLS, and the settings and sentinel that lead to it. */
interface Setup {
  readonly primary: RedisProcess;
  readonly sentinel?: RedisProcess;
  readonly settings: Readonly<Record<string, string>>;
}

type StartSetup = (authority: Authority, tls: Tls, bothAuthorities: string) => Promise<Setup>;

const TOPOLOGIES: Record<string, StartSetup> = {
  'one Redis': async (authority, tls) => {
    const primary = await startRedisTls(authority, { tls });
    return { primary, settings: { REDIS_URL: primary.address } };
  },
  'a sentinel': async (authority, tls, bothAuthorities) => {
    const primary = await startRedisTls(authority, { tls });
    // Sentinels can not change their authority while they run.
    const trusting = { ...authority, caFile: bothAuthorities };
    const sentinel = await startRedisTls(trusting, {
      tls,
      sentinel: true,
      userRules: rulesIn('sentinel-user'),
      lines: ['tls-replication yes', `sentinel monitor primary 127.0.0.1 ${primary.port} 1`],
    });
    const settings = {
      REDIS_MODE: 'sentinel',
      REDIS_SENTINEL_MASTER: 'primary',
      REDIS_URL: sentinel.address,
      REDIS_SENTINEL_USERNAME: LIMITER_USER.username,
    };
    return { primary, sentinel, settings };
  },
  'a cluster': async (authority, tls) => {
    const primary = await startRedisTls(authority, {
      tls,
      userRules: limiterRules('cluster'),
      lines: [
        'cluster-enabled yes',
        'tls-cluster yes',
        `cluster-port ${await freePort()}`,
        'cluster-announce-ip 127.0.0.1',
      ],
    });
    await primary.command('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    await until(async () =>
      String(await primary.command('CLUSTER', 'INFO')).includes('cluster_state:ok'),
    );
    return { primary, settings: { REDIS_MODE: 'cluster', REDIS_URL: primary.address } };
  },
};

describeWithRedisProgram('a replica goes on without a restart', () => {
  let before: Authority;
  let after: Authority;
  let app: TestApp | undefined;
  beforeAll(async () => {
    [before, after] = await Promise.all([createAuthority('before'), createAuthority('after')]);
  });
  afterEach(async () => {
    await app?.stop(0);
    app = undefined;
  });
  afterAll(() => Promise.all([before.remove(), after.remove()]));

  test.each(Object.entries(TOPOLOGIES))(
    'when authorities, certificates and passwords change, with %s',
    async (_topology, startSetup) => {
      const [ofService, itsNext] = [
        await before.issueClientCertificate('service'),
        await after.issueClientCertificate('service'),
      ];
      const file = (name: string): string => join(before.folder, name);
      const bothAuthorities = file('both.crt');
      await writeFile(bothAuthorities, after.ca + before.ca);
      await writeFile(file('password'), LIMITER_USER.password);
      await copyFile(before.caFile, file('redis-ca.crt'));
      const oursBefore = await before.issueClientCertificate('tests');
      const ours: Tls = { ca: after.ca + before.ca, cert: oursBefore.cert, key: oursBefore.key };
      const { primary, sentinel, settings } = await startSetup(before, ours, bothAuthorities);
      const servers = sentinel ? [primary, sentinel] : [primary];

      app = await startTestApp({
        ...settings,
        REDIS_USERNAME: LIMITER_USER.username,
        REDIS_PASSWORD_FILE: file('password'),
        ...(sentinel && { REDIS_SENTINEL_PASSWORD_FILE: file('password') }),
        REDIS_TLS_CA_FILE: file('redis-ca.crt'),
        REDIS_TLS_CERT_FILE: ofService.certFile,
        REDIS_TLS_KEY_FILE: ofService.keyFile,
        WINDOW_MILLIS: '3600000',
        STORE_TIMEOUT_MILLIS: '10000',
      });
      const { url } = app;
      const key = uniqueKey();
      const approved = await approve(url, key, '?maxRequests=1');
      const waiter = begin(url, 'POST', `${ratePath(key)}?canWait=true`);
      await untilWaiting(url, key, 1);

      // For a while the old and the new credentials are valid on both sides.
      for (const server of servers) {
        await server.command('ACL', 'SETUSER', LIMITER_USER.username, '>the-next');
      }
      await copyFile(bothAuthorities, file('redis-ca.crt'));
      await copyFile(itsNext.certFile, ofService.certFile);
      await copyFile(itsNext.keyFile, ofService.keyFile);
      await writeFile(file('password'), 'the-next');
      await app.logged(({ msg }) => msg === 'credentials for Redis reloaded');
      await app.logged(
        ({ msg, authority }) =>
          msg === 'certificates for Redis reloaded' && authority !== undefined,
      );

      // From now on only the new ones are valid.
      const ofServer = await after.issueServerCertificate();
      const oursAfter = await after.issueClientCertificate('tests');
      await primary.command(
        ...(['CONFIG', 'SET', 'tls-cert-file', ofServer.certFile] as const),
        ...(['tls-key-file', ofServer.keyFile, 'tls-ca-cert-file', after.caFile] as const),
      );
      Object.assign(ours, { cert: oursAfter.cert, key: oursAfter.key });
      const old = `<${LIMITER_USER.password}`;
      for (const server of servers) {
        await server.command('ACL', 'SETUSER', LIMITER_USER.username, old);
        for (const type of ['NORMAL', 'PUBSUB']) {
          await server.command('CLIENT', 'KILL', 'TYPE', type);
        }
      }

      await until(async () => (await send(url, 'POST', ratePath(uniqueKey()))).status === 200);
      expect((await send(url, 'DELETE', `${ratePath(key)}/${approved}`)).status).toBe(200);
      expect((await waiter.answer).status).toBe(200);
    },
  );
});
