import { once } from 'node:events';

import { jest } from '@jest/globals';

import { startFakeRedis } from '../../../support/fake-redis.js';

const NAME = 'redis.test';

let isDnsUp = true;
jest.unstable_mockModule('node:dns/promises', () => ({
  lookup: () =>
    isDnsUp
      ? Promise.resolve([{ address: '127.0.0.1', family: 4 }])
      : Promise.reject(Object.assign(new Error('no answer'), { code: 'EAI_AGAIN' })),
}));
await import('../../../../src/redis/connections/ioredis-changes.js');
const { Redis } = await import('ioredis');

test('a client reports a failed look-up, and connects to the last address', async () => {
  const fake = await startFakeRedis(() => undefined);
  const port = Number(new URL(fake.url).port);
  const client = new Redis({ host: NAME, port, enableReadyCheck: false });
  await once(client, 'ready');
  isDnsUp = false;
  const failed = once(client, 'error');
  client.disconnect(true);
  expect(await failed).toMatchObject([{ name: 'LookupError', code: 'EAI_AGAIN' }]);
  await once(client, 'ready');
  client.disconnect();
  await fake.close();
});
