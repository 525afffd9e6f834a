import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { type TestApp, startTestApp } from '../../support/app.js';
import {
  type Authority,
  createAuthority,
  type IssuedCertificate,
} from '../../support/certificates.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { untilWaiting } from '../../support/debug-state.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import type { RedisProcess } from '../../support/redis-process.js';
import { startRedisTls } from '../../support/redis-tls.js';
import { limiterRules } from '../../support/redis-user.js';
import { uniqueKey } from '../../support/unique-key.js';

const USER = { username: 'other', password: 'p@ss:word/%', rules: limiterRules().join(' ') };

describeWithRedisProgram('a Redis that asks for certificates and a password', () => {
  let authority: Authority;
  let certificate: IssuedCertificate;
  let server: RedisProcess;
  let passwordFile: string;
  let app: TestApp | undefined;

  beforeAll(async () => {
    authority = await createAuthority();
    certificate = await authority.issueClientCertificate('sluice');
    server = await startRedisTls(authority, { user: USER });
    passwordFile = join(authority.folder, 'password');
    await writeFile(passwordFile, `${USER.password}\n`);
  });
  afterEach(async () => {
    await app?.stop(0);
    app = undefined;
  });
  afterAll(() => authority.remove());

  const start = async (environment: Record<string, string>): Promise<TestApp> => {
    app = await startTestApp({
      REDIS_URL: server.url,
      REDIS_USERNAME: USER.username,
      REDIS_PASSWORD_FILE: passwordFile,
      REDIS_TLS_CA_FILE: authority.caFile,
      REDIS_TLS_CERT_FILE: certificate.certFile,
      REDIS_TLS_KEY_FILE: certificate.keyFile,
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
      ...environment,
    });
    return app;
  };

  test('is used with both, also for wakes', async () => {
    const { url } = await start({ STORE_TIMEOUT_MILLIS: '30000' });
    const key = uniqueKey();
    const approved = await approve(url, key);
    const waiter = begin(url, 'POST', `${ratePath(key)}?canWait=true`);
    await untilWaiting(url, key, 1);
    await send(url, 'DELETE', `${ratePath(key)}/${approved}`);
    expect((await waiter.answer).status).toBe(200);
  });

  test('accepts a percent-encoded password in the URL', async () => {
    const { username, password } = USER;
    const { url } = await start({
      STORE_TIMEOUT_MILLIS: '30000',
      REDIS_URL: server.address.replace('//', `//${username}:${encodeURIComponent(password)}@`),
      REDIS_USERNAME: '',
      REDIS_PASSWORD_FILE: '',
    });
    expect((await send(url, 'POST', ratePath(uniqueKey()))).status).toBe(200);
  });

  test.each([
    ['without a certificate', { REDIS_TLS_CERT_FILE: '', REDIS_TLS_KEY_FILE: '' }],
    ['without the authority', { REDIS_TLS_CA_FILE: '' }],
    ['for a server of another name', { REDIS_TLS_SERVER_NAME: 'elsewhere.example' }],
    ['with a wrong password', { REDIS_PASSWORD_FILE: '', REDIS_PASSWORD: 'wrong-secret' }],
  ])('is not reached %s: 503, not ready, and no secret in the log', async (_how, changed) => {
    const service = await start({ STORE_TIMEOUT_MILLIS: '200', ...changed });
    const check = await send(service.url, 'POST', ratePath(uniqueKey()));
    expect(check.status).toBe(503);
    expect((await send(service.url, 'GET', '/readyz')).status).toBe(503);
    await service.logged(({ msg }) => msg === 'redis connection failed');
    const lines = JSON.stringify(service.log);
    for (const secret of [USER.password, 'wrong-secret']) expect(lines).not.toContain(secret);
    await service.stop(0);
    app = undefined;
    // The log may contain the wrong password.
    await server.command('ACL', 'LOG', 'RESET');
  });
});
