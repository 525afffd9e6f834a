import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { USAGE } from '../../../src/app/command-line.js';
import { packageVersion } from '../../../src/common/texts.js';
import { settingsSchema } from '../../../src/config/settings.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { send } from '../../support/http-client.js';
import {
  killReplicas,
  type LogLine,
  startFailingReplica,
  startReplica,
} from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { tokenFile } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useTls } from '../../support/use-tls.js';

const ENTRY = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

const redis = useRedis();
const tls = useTls();
const folder = useTemporaryFolder();
afterEach(killReplicas);

describe('a command line', () => {
  /** The settings are invalid: a command line must not need valid ones. */
  function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
    const env = { MAX_REQUESTS: 'many' };
    return spawnSync(process.execPath, [ENTRY, ...args], { env, encoding: 'utf8' });
  }

  test('--help prints the usage, and each setting with its default', () => {
    const { status, stdout, stderr } = run('--help');
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain(USAGE);
    expect(stdout).toContain('docs/settings.md');
    const names = [...stdout.matchAll(/^ {2}([A-Z\d_]+) +\S+$/gm)].map(([, name]) => name);
    expect(names).toEqual(Object.keys(settingsSchema.shape));
    expect(stdout).toMatch(/^ {2}MAX_REQUESTS +100$/m);
  });

  test('--version prints the version', () => {
    expect(run('--version')).toMatchObject({
      status: 0,
      stdout: `${packageVersion()}\n`,
      stderr: '',
    });
  });

  test('an unknown option ends with code 1, and prints what is wrong and the usage', () => {
    expect(run('--max-requests', '5')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: `unknown option --max-requests\n\n${USAGE}\n`,
    });
  });
});

describe('a replica that can not start', () => {
  async function expectOneLine(settings: Record<string, string>, line: string): Promise<void> {
    expect(await startFailingReplica(settings)).toEqual({
      code: 1,
      stdout: '',
      stderr: `${line}\n`,
    });
  }

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
      await expectOneLine({ [name]: value }, line);
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
      // The start takes as long, and no attempt to connect does.
      STORE_TIMEOUT_MILLIS: '1500',
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

test('watching files does not hold a replica that stops', async () => {
  const path = await tokenFile(folder, {
    name: 'billing',
    token: 'token-of-billing',
    scopes: ['check'],
  });
  const replica = await startReplica({ ...tls.settings, AUTH_TOKENS_FILE: path, ADMIN_PORT: '0' });

  expect(await replica.kill('SIGTERM')).toBe(0);
  expect(replica.log.map(({ msg }) => msg)).toEqual(['serving', 'stopping', 'stopped']);
});

describe('a replica on a public address', () => {
  const HOST = '0.0.0.0';
  const isWarning = ({ level }: LogLine): boolean => level === 'warn';

  test('warns once at the start about endpoints that are open without tokens', async () => {
    const replica = await startReplica({ HOST });
    await replica.kill('SIGTERM');

    expect(replica.log.filter(isWarning)).toMatchObject([
      {
        host: HOST,
        open: ['checks', 'releases', 'overrides of limits', '/debug', '/ui', '/metrics'],
        set: 'AUTH_TOKENS_FILE',
        msg: 'no authentication configured',
      },
    ]);
  });
});
