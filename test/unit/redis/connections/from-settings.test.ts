import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { SettingsError } from '../../../../src/config/settings-error.js';
import { parseSettings } from '../../../../src/config/settings.js';
import type { ConnectionSettings } from '../../../../src/redis/connections/connection-settings.js';
import { connectionSettingsFrom } from '../../../../src/redis/connections/from-settings.js';
import { type Authority, createAuthority } from '../../../support/certificates.js';
import { recordLog } from '../../../support/recorded-log.js';
import { useTemporaryFolder } from '../../../support/temporary-folder.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { until } from '../../../support/until.js';

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
  ['redis://localhost', undefined, 0],
  ['redis://localhost/', undefined, 0],
  ['redis://localhost/3', undefined, 3],
  ['redis://localhost/3', '5', 5],
  ['redis://localhost/3', '0', 0],
])('the database of %s with REDIS_DATABASE=%s is %d', async (url, given, database) => {
  const environment = { REDIS_URL: url, ...(given === undefined ? {} : { REDIS_DATABASE: given }) };

  expect(await connectionSettings(environment)).toMatchObject({ database, name: 'sluice:replica' });
});

test('a URL without TLS has no TLS settings', async () => {
  const { tls } = await connectionSettings({ REDIS_URL: 'redis://localhost' });
  expect(tls).toBeUndefined();
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
  beforeAll(async () => {
    authority = await createAuthority();
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
    const [first, second] = [
      await authority.issueClientCertificate('first'),
      await authority.issueClientCertificate('second'),
    ];
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
    const { cert, key } = await authority.issueClientCertificate('client');
    const { key: otherKey } = await authority.issueClientCertificate('other');
    const texts: Record<string, string> = { ca: authority.ca, cert, key, 'other key': otherKey };
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
