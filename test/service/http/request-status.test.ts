import { randomUUID } from 'node:crypto';

import type { Limiter } from '../../../src/limiter/limiter.js';
import { bothLimiters, PATIENT_STORE } from '../../support/both-limiters.js';
import { httpAppOver, serve } from '../../support/http-app.js';
import { type Answer, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { scrape } from '../../support/prometheus-text.js';
import { bearer } from '../../support/tokens.js';
import { useApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useApps();
const HOUR = 3_600_000;
const SETTINGS = { WINDOW_MILLIS: `${HOUR}`, MAX_REQUESTS: '1', LOG_4XX: 'true' };

describe.each(bothLimiters(redis))('the status of a request (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), ...SETTINGS, ...PATIENT_STORE }));
  const key = useHttpKey(() => app);
  const get = (requestId: string, query = '') =>
    send(app.url, 'GET', `${ratePath(key.name)}/${requestId}${query}`);
  const NOT_FOUND = () => [404, { error: 'request not found', key: key.name }];

  test('that is approved says so, and is not cached', async () => {
    const answer = await get(await key.approve());
    expect(bodyOf(answer)).toEqual([200, { status: 'approved' }]);
    expect(answer.headers).toMatchObject({ 'cache-control': 'no-store' });
    expect(answer.headers).not.toHaveProperty(['ratelimit']);
  });

  test('that is held says for how long, in whole milliseconds', async () => {
    const { holdMillis, ...body } = (await get(await key.approve('?holdMillis=60000'))).json() as {
      holdMillis: number;
    };
    expect(body).toEqual({ status: 'approved' });
    expect(Number.isInteger(holdMillis)).toBe(true);
    expect(holdMillis).toBeGreaterThan(0);
    expect(holdMillis).toBeLessThanOrEqual(60_000);
  });

  test('that waits says where and how long at least, by its id in any case', async () => {
    await key.approve();
    const [first, second] = [randomUUID(), randomUUID()];
    await key.wait(`?canWait=true&requestId=${first}`);
    await key.wait(`?canWait=true&requestId=${second}`);
    const waiting = async (id: string) => (await get(id)).json() as { waitMillis: number };
    const [head, next] = [await waiting(first.toUpperCase()), await waiting(second)];
    expect([head, next]).toEqual([
      { status: 'waiting', position: 1, waitMillis: expect.any(Number) as number },
      { status: 'waiting', position: 2, waitMillis: expect.any(Number) as number },
    ]);
    expect(head.waitMillis).toBeGreaterThan(HOUR - 60_000);
    expect(head.waitMillis).toBeLessThanOrEqual(HOUR);
    expect(next.waitMillis).toBeGreaterThan(2 * HOUR - 60_000);
    await key.release(first);
    expect(await waiting(second)).toMatchObject({ position: 1 });
    await key.release(second);
    expect(bodyOf(await get(second))).toEqual(NOT_FOUND());
  });

  test('that is unknown, or was released, is not found, and makes no key', async () => {
    expect(bodyOf(await get(randomUUID()))).toEqual(NOT_FOUND());
    expect(await key.state()).toMatchObject({ Found: false });
    const id = await key.approve();
    await key.release(id);
    expect(bodyOf(await get(id))).toEqual(NOT_FOUND());
  });

  test('takes no parameters', async () => {
    const error = 'peek must be left out of the URL';
    expect(bodyOf(await get(randomUUID(), '?peek=true'))).toEqual([400, { error, key: key.name }]);
  });

  test.each([
    ['GET', '7', 'DELETE, PUT'],
    ['GET', `${randomUUID()}0`, 'DELETE, PUT'],
    ['POST', '7', 'DELETE, PUT'],
    ['POST', randomUUID(), 'GET, DELETE, PUT'],
  ])('is not asked for by %s with %s, which is a 405', async (method, part, allow) => {
    const answer = await send(app.url, method, `${ratePath(key.name)}/${part}`);
    const error = `${method} takes no such part after the key; send a / in a key as %2F`;
    expect(bodyOf(answer)).toEqual([405, { error, key: key.name }]);
    expect(answer.headers.allow).toBe(allow);
    expect(await key.state()).toMatchObject({ Found: false });
  });

  test('is not read by HEAD', async () => {
    const answer = await send(app.url, 'HEAD', `${ratePath(key.name)}/${await key.approve()}`);
    expect([answer.status, answer.headers.allow]).toEqual([405, 'GET, DELETE, PUT']);
  });

  test('is no decision for metrics, and its id is not logged', async () => {
    const before = (await scrape(app.url)).valuesOf('ratelimit_decisions_total');
    const id = randomUUID();
    await get(id);
    expect((await scrape(app.url)).valuesOf('ratelimit_decisions_total')).toEqual(before);
    const line = app.log.find(({ errorCode, key: of }) => {
      return errorCode === 'REQUEST_NOT_FOUND' && of === key.name;
    });
    expect(line).toMatchObject({ req: { url: `/rate/${key.name}/[Redacted]` } });
    expect(JSON.stringify(app.log)).not.toContain(id);
  });
});

test('the status of a request needs the scope and the key of a check, and no rule', async () => {
  const tokens = [
    { name: 'one', token: 'token-of-one-worker', scopes: ['check'], key_patterns: ['mine'] },
    { name: 'reader', token: 'token-of-a-reader', scopes: ['debug', 'release'] },
  ];
  const rules = [{ key_pattern: 'ruled' }];
  const app = await start({ UNKNOWN_KEYS: 'deny' }, { tokens, rules });
  const get = (key: string, token: string) =>
    send(app.url, 'GET', `/rate/${key}/${randomUUID()}`, bearer({ token }));
  const errorOf = (answer: Answer) => [answer.status, (answer.json() as { error?: string }).error];
  expect(errorOf(await get('mine', 'token-of-one-worker'))).toEqual([404, 'request not found']);
  expect(errorOf(await get('mine', 'token-of-a-reader'))).toEqual([
    403,
    'the token lacks the scope check',
  ]);
  expect(errorOf(await get('other', 'token-of-one-worker'))).toEqual([
    403,
    'the token does not allow this key',
  ]);
});

test('a turn is at the next whole millisecond', async () => {
  const limiter = {
    waiting: 0,
    statusOf: () => Promise.resolve({ status: 'waiting', position: 3, waitMillis: 0.2 }),
  } as Partial<Limiter>;
  const app = await serve(httpAppOver(limiter as Limiter));
  const answer = await send(app.url, 'GET', `/rate/key/${randomUUID()}`);
  await app.close();
  expect(bodyOf(answer)).toEqual([200, { status: 'waiting', position: 3, waitMillis: 1 }]);
});
