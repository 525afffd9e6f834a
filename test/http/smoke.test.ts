import { startTestApp, type TestApp } from '../support/app.js';
import { uniqueKey } from '../support/unique-key.js';
import { useRedis } from '../support/use-redis.js';

const redis = useRedis();

describe.each([
  ['embedded', () => ({})],
  ['redis', () => ({ REDIS_URL: redis.url })],
])('smoke %s', (_name, environment) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ ...environment(), MAX_REQUESTS: '1', WINDOW_MILLIS: '60000' });
  });
  afterAll(() => app.stop(0));

  test('approves', async () => {
    const key = uniqueKey();
    const answer = await fetch(`${app.url}/rate/${key}`, { method: 'POST' });
    expect(answer.status).toBe(200);
    expect(((await answer.json()) as { request_id: string }).request_id).toMatch(/^[0-9a-f-]{36}$/);
    expect((await fetch(`${app.url}/rate/${key}`)).status).toBe(429);
  });
});
