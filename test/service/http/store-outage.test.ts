import { randomUUID } from 'node:crypto';

import { type TestApp, startTestApp } from '../../support/app.js';
import { untilWaiting } from '../../support/debug-state.js';
import { approve, begin, type PendingRequest, send } from '../../support/http-client.js';
import { type RedisServer, startRedisServer } from '../../support/redis-server.js';
import { uniqueKey } from '../../support/unique-key.js';

const REQUESTS: [what: string, method: string, path: (key: string) => string][] = [
  ['a check', 'POST', (key) => `/rate/${key}`],
  ['a check by GET', 'GET', (key) => `/rate/${key}`],
  ['a check that can wait', 'POST', (key) => `/rate/${key}?canWait=true`],
  ['a peek', 'GET', (key) => `/rate/${key}?peek=true`],
  ['the status of a request', 'GET', (key) => `/rate/${key}/${randomUUID()}`],
  ['a release', 'DELETE', (key) => `/rate/${key}/${randomUUID()}`],
  ['debug of one key', 'GET', (key) => `/debug/${key}`],
];

async function expectUnavailable(app: TestApp, method: string, path: string, key?: string) {
  const answer = await send(app.url, method, path);

  expect(answer.status).toBe(503);
  expect(answer.headers['content-type']).toBe('application/json');
  expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  const error = 'store unavailable';
  expect(answer.json()).toStrictEqual(key === undefined ? { error } : { error, key });
}

describe('while Redis is down', () => {
  let server: RedisServer;
  let app: TestApp;
  const fullKey = uniqueKey();
  beforeAll(async () => {
    server = await startRedisServer();
    app = await startTestApp({
      REDIS_URL: server.url,
      STORE_TIMEOUT_MILLIS: '1000',
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
      LOG_LEVEL: 'debug',
    });
    await approve(app.url, fullKey);
    await server.stop();
  });
  afterAll(async () => {
    await app.stop(0);
    await server.stop();
  });

  test.each(REQUESTS)('%s gets a 503 that says when to come back', async (_what, method, path) => {
    const key = uniqueKey();
    await expectUnavailable(app, method, path(key), key);
  });

  test('debug of all keys gets a 503 that says when to come back', async () => {
    await expectUnavailable(app, 'GET', '/debug');
  });

  test('a check of a key that was full gets a 503, not a denial', async () => {
    await expectUnavailable(app, 'POST', `/rate/${fullKey}`, fullKey);
  });

  test('a 503 is in the log with its correlation id, at the level debug', async () => {
    const correlationId = uniqueKey();
    await send(app.url, 'POST', `/rate/${uniqueKey()}`, { 'X-Correlation-ID': correlationId });
    const line = await app.logged((entry) => entry.correlationId === correlationId);

    expect(line).toMatchObject({
      level: 'debug',
      res: { statusCode: 503 },
      reason: 'store unavailable',
    });
  });
});

describe('a client that waits when Redis goes down', () => {
  let app: TestApp;
  let key: string;
  let waiting: PendingRequest;
  beforeEach(async () => {
    const server = await startRedisServer();
    app = await startTestApp({
      REDIS_URL: server.url,
      STORE_TIMEOUT_MILLIS: '1000',
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
    });
    key = uniqueKey();
    await approve(app.url, key);
    waiting = begin(app.url, 'POST', `/rate/${key}?canWait=true`);
    await untilWaiting(app.url, key, 1);
    await server.stop();
  });

  test('can disconnect, and is logged as usual', async () => {
    waiting.disconnect();
    const line = await app.logged(({ status }) => status === 499);
    await app.stop(0);

    expect(line).toMatchObject({ level: 'info', key });
  });

  test('is turned away when the service stops', async () => {
    await app.stop(0);

    expect((await waiting.answer).status).toBe(503);
  });
});
