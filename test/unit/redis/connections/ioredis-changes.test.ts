import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';

import { Redis } from 'ioredis';

import '../../../../src/redis/connections/ioredis-changes.js';
import { startFakeRedis } from '../../../support/fake-redis.js';

let server: Server;
beforeAll(async () => {
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

test('a socket of a client may fail more than once', async () => {
  const { port } = server.address() as AddressInfo;
  const client = new Redis({ host: '127.0.0.1', port, retryStrategy: null });
  const failed = once(client, 'error');
  const [accepted] = (await once(server, 'connection')) as [Socket];
  const { stream } = client as unknown as { stream: Socket };
  stream.emit('error', new Error('first'));
  // Without a listener the error would be thrown here.
  stream.emit('error', new Error('second'));
  expect(await failed).toMatchObject([{ message: 'first' }]);
  client.disconnect();
  accepted.destroy();
});

test('a host name leads to a server', async () => {
  const fake = await startFakeRedis(() => undefined);
  const client = new Redis(fake.url.replace('127.0.0.1', 'localhost'), { enableReadyCheck: false });
  expect(await client.ping()).toBe('OK');
  client.disconnect();
  await fake.close();
});

test('a connection may end before the reply to an ASKING that nobody awaits', async () => {
  const fake = await startFakeRedis((command) => (command === 'ASKING' ? '' : undefined));
  const client = new Redis(fake.url, { retryStrategy: null, enableReadyCheck: false });
  client.on('error', () => undefined);
  await client.ping();
  const ended = once(client, 'end');
  void client.asking();
  await fake.close();
  await ended;
  // An unhandled rejection fails the test.
  await nextTick();
});
