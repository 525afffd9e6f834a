import '../../../src/redis/connections/ioredis-changes.js';

import type { Redis } from 'ioredis';

import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

let client: Redis;
beforeEach(async () => {
  client = redis.client.duplicate();
  await client.ping();
});
afterEach(() => {
  client.disconnect();
});

/** How often the server has read from its clients so far, this command included. */
async function reads(): Promise<number> {
  return Number(/total_reads_processed:(\d+)/.exec(await client.info('stats'))![1]);
}

test('commands that are sent in one go arrive in one read, and are answered in their order', async () => {
  const key = uniqueKey();
  const before = await reads();
  const replies = await Promise.all(Array.from({ length: 100 }, () => client.incr(key)));
  // One for the commands, and one for the question.
  expect((await reads()) - before).toBe(2);
  expect(replies).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  await client.del(key);
});

test('a command alone does not wait for others', async () => {
  const before = await reads();
  await client.ping();
  await client.ping();
  expect((await reads()) - before).toBe(3);
});

test('commands that are sent when the connection ends are answered', async () => {
  const last = [client.ping(), client.ping(), client.quit()];
  expect(await Promise.all(last)).toEqual(['PONG', 'PONG', 'OK']);
});
