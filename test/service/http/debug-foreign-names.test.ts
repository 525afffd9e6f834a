import { type TestApp, startTestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { approve, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

let app: TestApp;
let prefix: string;
beforeEach(async () => {
  prefix = `${uniqueKey()}:`;
  app = await startTestApp({
    ...PATIENT_STORE,
    REDIS_URL: redis.url,
    KEY_PREFIX: prefix,
    WINDOW_MILLIS: '3600000',
  });
});
afterEach(() => app.stop(0));

test('a foreign name in Redis is left out of the list, and logged', async () => {
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

test('a check of a foreign name fails, and harms no other check of the batch', async () => {
  const foreign = uniqueKey();
  await redis.client.set(`${prefix}{${foreign}}`, 'not a hash', 'EX', 3600);

  const keys = Array.from({ length: 40 }, (_, i) => (i === 20 ? foreign : uniqueKey()));
  const answers = await Promise.all(keys.map((key) => send(app.url, 'POST', `/rate/${key}`)));

  const statuses = answers.map(({ status }) => status);
  expect(statuses).toEqual(keys.map((key) => (key === foreign ? 500 : 200)));
});
