import { PATIENT_STORE } from '../../support/both-limiters.js';
import { approve, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

const start = useApps();

test('a foreign name in Redis is left out of the list, and logged', async () => {
  const prefix = `${uniqueKey()}:`;
  const app = await start({
    ...PATIENT_STORE,
    REDIS_URL: redis.url,
    KEY_PREFIX: prefix,
    WINDOW_MILLIS: '3600000',
  });
  const ours = Array.from({ length: 150 }, uniqueKey);
  await Promise.all(ours.map((key) => approve(app.url, key)));
  const foreign = uniqueKey();
  await redis.client.set(`${prefix}{${foreign}}`, 'not a hash', 'EX', 3600);

  const answer = await send(app.url, 'GET', '/debug');

  expect(answer.status).toBe(200);
  const { Instances } = answer.json() as { Instances: Record<string, unknown> };
  expect(Object.keys(Instances).sort()).toEqual(ours.sort());
  await app.logged((line) => line.level === 'warn' && line.key === foreign);
});
