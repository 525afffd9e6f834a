import type { Redis } from 'ioredis';

import type { ConnectionSettings } from '../../../../src/redis/connections/connection-settings.js';
import { connectToPrimary } from '../../../../src/redis/connections/primary-connections.js';
import { recordLog } from '../../../support/recorded-log.js';

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
