import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Redis } from 'ioredis';

import { SettingsError } from '../../../../src/config/named-file.js';
import { parseSettings } from '../../../../src/config/settings.js';
import {
  addressIn,
  clientOptions,
  type ConnectionSettings,
  credentials,
  credentialsIn,
  reconnectAfter,
  sharedCredentialsIn,
} from '../../../../src/redis/connections/connection-settings.js';
import { connectionSettingsFrom } from '../../../../src/redis/connections/from-settings.js';
import {
  type Authority,
  createAuthority,
  type IssuedCertificate,
} from '../../../support/certificates.js';
import { recordLog } from '../../../support/recorded-log.js';
import { useTemporaryFolder } from '../../../support/temporary-folder.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { until } from '../../../support/until.js';
import { connectToPrimary } from '../../../../src/redis/connections/primary-connections.js';

describe('connection settings from files and variables', () => {
  const folder = useTemporaryFolder();

  const opened: ConnectionSettings[] = [];
  afterEach(() => {
    for (const settings of opened.splice(0)) settings.stopWatching?.();
  });

  async function connectionSettings(
    environment: Record<string, string>,
    { logger } = recordLog('silent'),
  ): Promise<ConnectionSettings> {
    const settings = parseSettings(environment);
    const connection = await connectionSettingsFrom(
      settings,
      settings.REDIS_URL!,
      'sluice:replica',
      logger,
    );
    opened.push(connection);
    return connection;
  }

  /** The path of a new file. */
  async function fileWith(content: string): Promise<string> {
    const path = join(folder, uniqueKey());
    await writeFile(path, content);
    return path;
  }

  test.each([
    ['redis://localhost/', undefined, 0],
    ['redis://localhost/3', undefined, 3],
    ['redis://localhost/3', '5', 5],
    ['redis://localhost/3', '0', 0],
  ])('the database of %s with REDIS_DATABASE=%s is %d', async (url, given, database) => {
    const environment = {
      REDIS_URL: url,
      ...(given === undefined ? {} : { REDIS_DATABASE: given }),
    };

    expect(await connectionSettings(environment)).toMatchObject({
      database,
      name: 'sluice:replica',
    });
  });

  test('the error for a missing file names its setting', async () => {
    const settings = connectionSettings({
      REDIS_URL: 'rediss://localhost',
      REDIS_TLS_CA_FILE: join(folder, 'none'),
    });

    await expect(settings).rejects.toThrow(SettingsError);
    await expect(settings).rejects.toThrow(/^REDIS_TLS_CA_FILE: /);
  });

  describe('certificates', () => {
    let authority: Authority;
    let first: IssuedCertificate;
    let second: IssuedCertificate;
    beforeAll(async () => {
      authority = await createAuthority();
      first = await authority.issueClientCertificate('first');
      second = await authority.issueClientCertificate('second');
    });
    afterAll(() => authority.remove());

    test('are the content of the files in the settings', async () => {
      const { tls } = await connectionSettings({
        REDIS_URL: 'rediss://localhost',
        REDIS_TLS_CA_FILE: authority.caFile,
        REDIS_TLS_SERVER_NAME: 'redis.example',
      });
      expect(tls).toStrictEqual({ ca: authority.ca, servername: 'redis.example' });
    });

    test('can come from a bundle with text between them', async () => {
      const bundle = `# one\n${authority.ca}\n# two\n${authority.ca}`;
      const { tls } = await connectionSettings({
        REDIS_URL: 'rediss://localhost',
        REDIS_TLS_CA_FILE: await fileWith(bundle),
      });
      expect(tls).toStrictEqual({ ca: bundle });
    });

    test('follow their files, in the same object', async () => {
      const [certFile, keyFile] = [await fileWith(first.cert), await fileWith(first.key)];
      const { tls } = await connectionSettings({
        REDIS_URL: 'rediss://localhost',
        REDIS_TLS_CERT_FILE: certFile,
        REDIS_TLS_KEY_FILE: keyFile,
      });
      expect(tls).toStrictEqual({ cert: first.cert, key: first.key });
      await copyFile(second.certFile, certFile);
      await copyFile(second.keyFile, keyFile);
      await until(() => tls?.cert === second.cert);
      expect(tls).toStrictEqual({ cert: second.cert, key: second.key });
    });

    test.each([
      ['REDIS_TLS_CA_FILE', 'no certificate', { REDIS_TLS_CA_FILE: 'no PEM' }],
      [
        'REDIS_TLS_CA_FILE',
        'one and a half certificates',
        { REDIS_TLS_CA_FILE: '{ca}-----BEGIN CERTIFICATE-----\nMII' },
      ],
      [
        'REDIS_TLS_CERT_FILE',
        'no certificate',
        { REDIS_TLS_CERT_FILE: 'no PEM', REDIS_TLS_KEY_FILE: '{key}' },
      ],
      [
        'REDIS_TLS_KEY_FILE',
        'no key',
        { REDIS_TLS_CERT_FILE: '{cert}', REDIS_TLS_KEY_FILE: 'no PEM' },
      ],
      [
        'REDIS_TLS_KEY_FILE',
        'the key of another certificate',
        { REDIS_TLS_CERT_FILE: '{cert}', REDIS_TLS_KEY_FILE: '{other key}' },
      ],
    ])('%s with %s is rejected', async (variable, _what, files) => {
      const { ca } = authority;
      const { cert, key } = first;
      const texts: Record<string, string> = { ca, cert, key, 'other key': second.key };
      const environment: Record<string, string> = { REDIS_URL: 'rediss://localhost' };
      for (const [name, text] of Object.entries(files)) {
        const content = text.replace(/\{(.*?)\}/, (_, word: string) => texts[word]!);
        environment[name] = await fileWith(content);
      }
      const settings = connectionSettings(environment);
      await expect(settings).rejects.toThrow(SettingsError);
      await expect(settings).rejects.toThrow(`${variable}: got "${environment[variable]}"`);
    });
  });

  describe('credentials', () => {
    test('from files follow their files, and credentials from variables stay', async () => {
      const file = await fileWith('before\n');
      const { username, password } = await connectionSettings({
        REDIS_URL: 'redis://localhost',
        REDIS_USERNAME: 'user',
        REDIS_PASSWORD_FILE: file,
      });
      expect([username, String(password)]).toEqual(['user', 'before']);
      await writeFile(file, 'after\n');
      await until(() => String(password) === 'after');
    });

    test('stay unchanged if a file becomes empty, which is logged', async () => {
      const file = await fileWith('before');
      const log = recordLog();
      const { password } = await connectionSettings(
        { REDIS_URL: 'redis://localhost', REDIS_PASSWORD_FILE: file },
        log,
      );
      await writeFile(file, '\n');
      await until(() =>
        log.messages.includes('credentials for Redis not reloaded, the last good ones stay in use'),
      );
      expect(String(password)).toBe('before');
    });
  });
});

test.each([
  ['redis://localhost', {}],
  ['redis://user@localhost', { username: 'user' }],
  ['redis://:password@localhost', { password: 'password' }],
  ['redis://user:password@localhost', { username: 'user', password: 'password' }],
  ['rediss://us%40er:%2F%3A%2C%25%20%D0%BA@localhost', { username: 'us@er', password: '/:,% к' }],
])('credentials in %s', (url, expected) => {
  expect(credentialsIn(new URL(url))).toStrictEqual(expected);
});

test.each([
  ['redis://localhost', { host: 'localhost', port: 6379 }],
  ['rediss://user:password@redis.example', { host: 'redis.example', port: 6379 }],
  ['redis://[::1]', { host: '::1', port: 6379 }],
  ['redis://[2001:db8::7]:7000', { host: '2001:db8::7', port: 7000 }],
])('the address in %s', (url, expected) => {
  expect(addressIn(new URL(url), 6379)).toStrictEqual(expected);
});

test.each([
  [['redis://a', 'redis://user@b', 'redis://:first@c', 'redis://:second@d'], { password: 'first' }],
  [['redis://a', 'redis://user@b'], {}],
])('the credentials that the servers of %j share', (urls, expected) => {
  expect(sharedCredentialsIn(urls.map((url) => new URL(url)))).toStrictEqual(expected);
});

const SETTINGS: ConnectionSettings = {
  mode: 'standalone',
  urls: ['redis://localhost'],
  database: 0,
  timeoutMillis: 700,
  name: 'sluice:replica',
};

test('the delay of a reconnection grows, up to a quarter of a second', () => {
  const delays = Array.from({ length: 8 }, (_, i) => reconnectAfter(i + 1));
  expect(delays).toEqual([10, 20, 40, 80, 160, 250, 250, 250]);
  expect(reconnectAfter(10_000)).toBe(250);
});

test('a connection has a name and a bounded time, queues nothing, sends nothing again, and is made again', () => {
  expect(clientOptions(SETTINGS)).toMatchObject({
    connectionName: 'sluice:replica',
    connectTimeout: 700,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: reconnectAfter,
  });
});

test('a connection awaits late replies, since the callers have time limits', () => {
  expect(clientOptions(SETTINGS)).not.toHaveProperty('commandTimeout');
});

test('TLS is passed as the same object, since its properties may change', () => {
  const tls = { ca: 'ca', servername: 'redis' };
  expect(clientOptions({ ...SETTINGS, tls }).tls).toBe(tls);
});

describe('credentials', () => {
  const ofUrl = { username: 'url user', password: 'url password' };

  test.each([
    ['of the URL', {}, ofUrl, ofUrl],
    ['of the settings', { username: 'user', password: 'password' }, {}, undefined],
    ['of the settings before the URL', { username: 'u', password: 'p' }, ofUrl, undefined],
    ['of both', { password: 'p' }, ofUrl, { username: 'url user', password: 'p' }],
    ['with a password alone', {}, { password: 'p' }, { password: 'p' }],
    ['that are missing', {}, {}, {}],
  ])('%s', (_what, settings, url, expected) => {
    expect(credentials({ ...SETTINGS, ...settings }, url)).toStrictEqual(expected ?? settings);
  });
});

/** The options of ioredis for these settings. Nobody listens at the addresses. */
async function optionsFor(
  settings: Omit<ConnectionSettings, 'database' | 'timeoutMillis' | 'name'>,
): Promise<Redis['options']> {
  const connections = connectToPrimary(
    { database: 3, timeoutMillis: 100, name: 'sluice:replica', ...settings },
    recordLog('silent').logger,
  );
  const { options } = connections.commands as Redis;
  await connections.close();
  return options;
}

test('sentinels get their own credentials, and servers those of Redis', async () => {
  const options = await optionsFor({
    mode: 'sentinel',
    urls: ['redis://127.0.0.1:1', 'redis://127.0.0.1:2'],
    sentinelMaster: 'primary',
    username: 'user',
    password: 'of-redis',
    sentinelUsername: 'asker',
    sentinelPassword: 'of-sentinels',
  });
  expect(options).toMatchObject({
    sentinels: [
      { host: '127.0.0.1', port: 1 },
      { host: '127.0.0.1', port: 2 },
    ],
    name: 'primary',
    username: 'user',
    password: 'of-redis',
    sentinelUsername: 'asker',
    sentinelPassword: 'of-sentinels',
    sentinelCommandTimeout: 100,
    db: 3,
  });
});

test('credentials in the URLs of sentinels are for the sentinels', async () => {
  const options = await optionsFor({
    mode: 'sentinel',
    urls: ['redis://127.0.0.1:1', 'redis://asker:of-sentinels@127.0.0.1:2'],
    sentinelMaster: 'primary',
  });
  expect(options).toMatchObject({ sentinelUsername: 'asker', sentinelPassword: 'of-sentinels' });
  expect([options.username, options.password]).toEqual([null, null]);
});
