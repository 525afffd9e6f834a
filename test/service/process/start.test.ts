import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';

import { PATIENT_STORE } from '../../support/both-limiters.js';
import { send } from '../../support/http-client.js';
import { killReplicas, startFailingReplica, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

afterEach(killReplicas);

describe('a replica that can not start', () => {
  const redis = useRedis();

  test.each([
    ['PORT', '65536', 'PORT: got "65536", takes a whole number from 0 to 65535'],
    ['LOG_2XX', 'a\nb', 'LOG_2XX: got "a\\nb", takes true, false, 1 or 0'],
    [
      'REDIS_URL',
      'http://:secret@localhost',
      'REDIS_URL: got a value that is not shown, takes a URL that starts with redis:// or rediss://, or several with commas between them; in a user or a password, percent-encode special characters, such as # / ? , as %23 %2F %3F %2C',
    ],
  ])(
    'because of a wrong %s says so in one line and ends with code 1',
    async (name, value, line) => {
      expect(await startFailingReplica({ [name]: value })).toEqual({
        code: 1,
        stdout: '',
        stderr: `${line}\n`,
      });
    },
  );

  describe('because a port is taken', () => {
    let other: Server;
    let port: string;
    beforeAll(async () => {
      other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      port = String((other.address() as AddressInfo).port);
    });
    afterAll(() => void other.close());

    test.each([
      ['PORT', 'embedded', () => ({})],
      ['PORT', 'redis', () => ({ REDIS_URL: redis.url })],
      ['ADMIN_PORT', 'embedded', () => ({})],
      ['GRPC_PORT', 'embedded', () => ({})],
    ])('says so in one line and ends with code 1: %s (%s limiter)', async (name, _, settings) => {
      const { code, stderr } = await startFailingReplica({ ...settings(), [name]: port });

      expect(code).toBe(1);
      expect(stderr).toBe(
        `${name}: got ${port} (EADDRINUSE), takes a port that no other process listens on\n`,
      );
    });
  });

  test.each([
    // TEST-NET-1, which no machine has: RFC 5737.
    ['192.0.2.1', /EADDRNOTAVAIL/],
    ['host.invalid', /ENOTFOUND|EAI_AGAIN/],
  ])(
    'because its host %s is not an address of this machine says so in one line and ends with code 1',
    async (host, reason) => {
      const { code, stderr } = await startFailingReplica({ HOST: host });

      expect(code).toBe(1);
      expect(stderr).toMatch(/^HOST: got "[\w.]+" \(\w+\), takes an address of this machine\n$/);
      expect(stderr).toContain(host);
      expect(stderr).toMatch(reason);
    },
  );
});

describe('a replica that starts', () => {
  const redis = useRedis();
  const folder = useTemporaryFolder();

  test.each([
    ['embedded', 'memory', () => ({})],
    ['redis', 'redis', () => ({ ...PATIENT_STORE, REDIS_URL: redis.url })],
  ])(
    'says where it serves, on which limiter, and with which limits (%s)',
    async (limiter, store, settings) => {
      const file = join(folder, 'rules.json');
      await writeFile(file, '{"keys": [{"key_pattern": "a"}, {"key_pattern": "b"}]}');
      const limits = { MAX_REQUESTS: '7', MAX_REQUESTS_IN_QUEUE: '9', CONFIG_FILE: file };
      const replica = await startReplica({ ...settings(), ...limits });

      expect(await replica.logged(({ msg }) => msg === 'serving')).toMatchObject({
        level: 'info',
        host: '127.0.0.1',
        port: Number(new URL(replica.url).port),
        limiter,
        store,
        windowMillis: 1000,
        maxRequests: 7,
        maxRequestsInQueue: 9,
        rules: 2,
      });
      expect((await send(replica.url, 'POST', `/rate/${uniqueKey()}`)).status).toBe(200);
    },
  );

  test('warns first of a variable that looks like a misspelt setting, without its value', async () => {
    const replica = await startReplica({ MAX_REQUEST: 'secret', MAX_REQUESTS: '7' });

    expect(replica.log[0]).toMatchObject({
      level: 'warn',
      variable: 'MAX_REQUEST',
      setting: 'MAX_REQUESTS',
      msg: 'MAX_REQUEST is not a setting; did you mean MAX_REQUESTS?',
    });
    expect(JSON.stringify(replica.log)).not.toContain('secret');
  });

  test('logs why it can not reach Redis once for each connection, without the password', async () => {
    const replica = await startReplica({
      // Port 1 is reserved, so no server listens there.
      REDIS_URL: 'redis://:secret@127.0.0.1:1',
      STORE_TIMEOUT_MILLIS: '500',
    });
    await send(replica.url, 'POST', `/rate/${uniqueKey()}`);
    await replica.kill('SIGTERM');

    const failures = replica.log.filter(({ msg }) => msg === 'redis connection failed');
    expect(failures.map(({ level, connection }) => [level, connection]).sort()).toEqual([
      ['warn', 'commands'],
      ['warn', 'subscriber'],
    ]);
    expect(JSON.stringify(replica.log)).not.toContain('secret');
  });
});
