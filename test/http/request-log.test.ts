import { type TestApp, startTestApp } from '../support/app.js';
import { bothLimiters, PATIENT_STORE } from '../support/both-limiters.js';
import { untilWaiting } from '../support/debug-state.js';
import { approve, begin, send } from '../support/http-client.js';
import type { LogLine } from '../support/replica-process.js';
import { uniqueKey } from '../support/unique-key.js';
import { useRedis } from '../support/use-redis.js';

const redis = useRedis();

/** One answer of each class, and how the app's log tells of them once it has stopped. */
async function answersOfEveryClass(app: TestApp) {
  const key = uniqueKey();
  const ids = {
    '2xx': uniqueKey(),
    denied: uniqueKey(),
    invalid: uniqueKey(),
    unknown: uniqueKey(),
    '5xx': uniqueKey(),
  };
  const correlated = (id: string) => ({ 'X-Correlation-ID': id });
  await send(app.url, 'POST', `/rate/${key}`, correlated(ids['2xx']));
  await send(app.url, 'POST', `/rate/${key}`, correlated(ids.denied));
  await send(app.url, 'POST', `/rate/${key}?canWait=x`, correlated(ids.invalid));
  await send(app.url, 'GET', '/unknown', correlated(ids.unknown));
  // Waits until the app stops, which turns it away with a 503.
  const waiting = begin(app.url, 'POST', `/rate/${key}?canWait=true`, correlated(ids['5xx']));
  await untilWaiting(app.url, key, 1);
  await app.stop(0);
  expect((await waiting.answer).status).toBe(503);
  return { key, ids, linesOf: (id: string) => app.log.filter((l) => l.correlationId === id) };
}

describe.each(bothLimiters(redis))('the request log (%s limiter)', (_name, settings) => {
  function start(environment: Readonly<Record<string, string>>): Promise<TestApp> {
    return startTestApp({
      ...settings(),
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
      ...environment,
    });
  }

  describe.each(['true', 'false'])('LOG_2XX=%s', (log2xx) => {
    describe.each(['true', 'false'])('LOG_4XX=%s', (log4xx) => {
      test.each(['true', 'false'])('LOG_5XX=%s: has a line for just these', async (log5xx) => {
        const app = await start({
          LOG_LEVEL: 'debug',
          LOG_2XX: log2xx,
          LOG_4XX: log4xx,
          LOG_5XX: log5xx,
        });
        const { ids, linesOf } = await answersOfEveryClass(app);

        const lines = Object.entries(ids).map(([name, id]) => [name, linesOf(id).length]);
        expect(Object.fromEntries(lines)).toEqual({
          '2xx': log2xx === 'true' ? 1 : 0,
          denied: log4xx === 'true' ? 1 : 0,
          invalid: log4xx === 'true' ? 1 : 0,
          unknown: log4xx === 'true' ? 1 : 0,
          '5xx': log5xx === 'true' ? 1 : 0,
        });
      });
    });
  });

  test('says nothing by default of what went well, was refused, or may be tried again', async () => {
    const { ids, linesOf } = await answersOfEveryClass(await start({}));

    for (const id of Object.values(ids)) expect(linesOf(id)).toEqual([]);
  });

  test('has the method, URL, status and duration of each, and a word for its level', async () => {
    const app = await start({
      LOG_LEVEL: 'debug',
      LOG_2XX: 'true',
      LOG_4XX: 'true',
      LOG_5XX: 'true',
    });
    const { key, ids, linesOf } = await answersOfEveryClass(app);

    const line = (level: string, method: string, url: string, status: number): unknown => [
      expect.objectContaining({
        level,
        method,
        url,
        status,
        responseTime: expect.any(Number) as unknown,
        msg: expect.stringMatching(/./) as unknown,
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as unknown,
      }),
    ];
    expect(linesOf(ids['2xx'])).toEqual(line('info', 'POST', `/rate/${key}`, 200));
    expect(linesOf(ids.denied)).toEqual(line('info', 'POST', `/rate/${key}`, 429));
    expect(linesOf(ids.invalid)).toEqual(line('info', 'POST', `/rate/${key}?canWait=x`, 400));
    expect(linesOf(ids.unknown)).toEqual(line('info', 'GET', '/unknown', 404));
    expect(linesOf(ids['5xx'])).toEqual(line('debug', 'POST', `/rate/${key}?canWait=true`, 503));
  });

  test('has the correlation id that was made up for a client without one', async () => {
    const app = await start({ LOG_2XX: 'true' });
    const { headers } = await send(app.url, 'GET', '/healthz');
    await app.stop(0);

    expect(app.log.filter(({ url }) => url === '/healthz')).toEqual([
      expect.objectContaining({ correlationId: headers['x-correlation-id'] }),
    ]);
  });

  test('has words for levels in every line', async () => {
    const app = await start({ LOG_LEVEL: 'trace', LOG_2XX: 'true', LOG_4XX: 'true' });
    await approve(app.url, uniqueKey());
    await answersOfEveryClass(app);

    const levels = new Set(app.log.map(({ level }: LogLine) => level));
    expect([...levels].sort()).toEqual(expect.arrayContaining(['debug', 'info']));
    for (const level of levels) expect(level).toMatch(/^(trace|debug|info|warn|error|fatal)$/);
  });

  test('LOG_LEVEL=error leaves out what is less', async () => {
    const app = await start({ LOG_LEVEL: 'error', LOG_2XX: 'true' });
    await send(app.url, 'GET', '/healthz');
    await app.stop(0);

    expect(app.log).toEqual([]);
  });
});

test('a fault of ours is an error in the log, with its cause, unless LOG_5XX=false', async () => {
  const lines = async (log5xx: string): Promise<LogLine[]> => {
    const prefix = `${uniqueKey()}:`;
    const app = await startTestApp({
      ...PATIENT_STORE,
      REDIS_URL: redis.url,
      KEY_PREFIX: prefix,
      LOG_5XX: log5xx,
    });
    // A name that the service uses holds what it can't have put there.
    await redis.client.set(`${prefix}{key}`, 'not a hash', 'EX', 3600);
    expect((await send(app.url, 'POST', '/rate/key')).status).toBe(500);
    await app.stop(0);
    return app.log.filter(({ status }) => status === 500);
  };

  expect(await lines('false')).toEqual([]);
  expect(await lines('true')).toEqual([
    expect.objectContaining({
      level: 'error',
      url: '/rate/key',
      err: expect.objectContaining({
        message: expect.stringContaining('WRONGTYPE') as unknown,
      }) as unknown,
    }),
  ]);
});
