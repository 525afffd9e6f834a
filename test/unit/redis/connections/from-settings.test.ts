import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { SettingsError } from '../../../../src/config/settings-error.js';
import { parseSettings } from '../../../../src/config/settings.js';
import type { ConnectionSettings } from '../../../../src/redis/connections/connection-settings.js';
import { connectionSettingsFrom } from '../../../../src/redis/connections/from-settings.js';
import { useTemporaryFolder } from '../../../support/temporary-folder.js';

const folder = useTemporaryFolder();

function connectionSettings(environment: Record<string, string>): ConnectionSettings {
  const settings = parseSettings(environment);
  return connectionSettingsFrom(settings, settings.REDIS_URL!, 'sluice:replica');
}

test.each([
  ['redis://localhost', undefined, 0],
  ['redis://localhost/', undefined, 0],
  ['redis://localhost/3', undefined, 3],
  ['redis://localhost/3', '5', 5],
  ['redis://localhost/3', '0', 0],
])('the database of %s with REDIS_DATABASE=%s is %d', (url, given, database) => {
  const environment = { REDIS_URL: url, ...(given === undefined ? {} : { REDIS_DATABASE: given }) };

  expect(connectionSettings(environment)).toMatchObject({ database, name: 'sluice:replica' });
});

test('a URL without TLS has no TLS settings', () => {
  expect(connectionSettings({ REDIS_URL: 'redis://localhost' }).tls).toBeUndefined();
});

test('a URL with TLS has what the files hold that the settings name', async () => {
  const file = join(folder, 'ca.pem');
  await writeFile(file, 'an authority');
  const { tls } = connectionSettings({
    REDIS_URL: 'rediss://localhost',
    REDIS_TLS_CA_FILE: file,
    REDIS_TLS_SERVER_NAME: 'redis.example',
  });

  expect(tls).toEqual({ ca: 'an authority', servername: 'redis.example' });
});

test('a file that is not there is told by the name of its setting', () => {
  const environment = { REDIS_URL: 'rediss://localhost', REDIS_TLS_CA_FILE: join(folder, 'none') };

  expect(() => connectionSettings(environment)).toThrow(SettingsError);
  expect(() => connectionSettings(environment)).toThrow(/^REDIS_TLS_CA_FILE: /);
});
