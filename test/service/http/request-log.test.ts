import { randomUUID } from 'node:crypto';

import { parseSettings } from '../../../src/config/settings.js';
import type { Limiter } from '../../../src/limiter/limiter.js';
import type { TestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { untilWaiting } from '../../support/debug-state.js';
import { httpAppOver, serve } from '../../support/http-app.js';
import { approve, begin, send } from '../../support/http-client.js';
import { smallLimiter } from '../../support/http-service.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { recordLog } from '../../support/recorded-log.js';
import type { LogLine } from '../../support/replica-process.js';
import { limiterWithSlowList } from '../../support/watched-limiter.js';
import { callersSpan } from '../../support/tracing/trace-headers.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const ONE_AN_HOUR = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };
const redis = useRedis();
const startApp = useApps();

function linesTo(log: readonly LogLine[], url: string): LogLine[] {
  return log.filter(({ req }) => (req as { url: string } | undefined)?.url === url);
}

/** Causes one answer of each class, and stops the app, so that its log is complete. */
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
  // Waits until the app stops, and gets a 503 then.
  const waiting = begin(app.url, 'POST', `/rate/${key}?canWait=true`, correlated(ids['5xx']));
  await untilWaiting(app.url, key, 1);
  await app.stop(0);
  expect((await waiting.answer).status).toBe(503);
  return { key, ids, linesOf: (id: string) => app.log.filter((l) => l.correlationId === id) };
}

describe('the request log', () => {
  function start(environment: Readonly<Record<string, string>>): Promise<TestApp> {
    return startApp({ ...ONE_AN_HOUR, ...environment });
  }

  test.each([
    ['true', 'false', 'false', ['2xx']],
    ['false', 'true', 'false', ['denied', 'invalid', 'unknown']],
    ['false', 'false', 'true', ['5xx']],
  ])(
    'LOG_2XX=%s, LOG_4XX=%s and LOG_5XX=%s log exactly the answers %j',
    async (LOG_2XX, LOG_4XX, LOG_5XX, logged) => {
      const app = await start({ LOG_LEVEL: 'debug', LOG_2XX, LOG_4XX, LOG_5XX });
      const { ids, linesOf } = await answersOfEveryClass(app);

      const lines = Object.entries(ids).flatMap(([name, id]) => linesOf(id).map(() => name));
      expect(lines).toEqual(logged);
    },
  );

  test('has the method, URL, status, key and duration of each answer, and its level as a word', async () => {
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
        req: expect.objectContaining({ method, url }) as unknown,
        res: { statusCode: status },
        ...(status === 404 ? {} : { key }),
        responseTime: expect.any(Number) as unknown,
        msg: status < 500 ? 'request completed' : 'request errored',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as unknown,
      }),
    ];
    expect(linesOf(ids['2xx'])).toEqual(line('info', 'POST', `/rate/${key}`, 200));
    expect(linesOf(ids.denied)).toEqual(line('info', 'POST', `/rate/${key}`, 429));
    expect(linesOf(ids.invalid)).toEqual(line('info', 'POST', `/rate/${key}?canWait=x`, 400));
    expect(linesOf(ids.unknown)).toEqual(line('info', 'GET', '/unknown', 404));
    expect(linesOf(ids['5xx'])).toEqual(line('debug', 'POST', `/rate/${key}?canWait=true`, 503));
  });

  test('has the generated correlation id of a client without one', async () => {
    const app = await start({ LOG_2XX: 'true' });
    const { headers } = await send(app.url, 'GET', '/healthz');
    await app.stop(0);

    expect(linesTo(app.log, '/healthz')).toEqual([
      expect.objectContaining({ correlationId: headers['x-correlation-id'] }),
    ]);
  });

  test('LOG_LEVEL=error leaves out lower levels', async () => {
    const app = await start({ LOG_LEVEL: 'error', LOG_2XX: 'true' });
    await send(app.url, 'GET', '/healthz');
    await app.stop(0);

    expect(app.log).toEqual([]);
  });
});

test('an internal error is logged as an error with its cause, unless LOG_5XX=false', async () => {
  const lines = async (log5xx: string): Promise<LogLine[]> => {
    const prefix = `${uniqueKey()}:`;
    const store = { ...PATIENT_STORE, REDIS_URL: redis.url, KEY_PREFIX: prefix };
    const app = await startApp({ ...store, LOG_5XX: log5xx });
    // The key's name in Redis holds a value that the service can not have written.
    await redis.client.set(`${prefix}{key}`, 'not a hash', 'EX', 3600);
    expect((await send(app.url, 'POST', '/rate/key')).status).toBe(500);
    await app.stop(0);
    return linesTo(app.log, '/rate/key');
  };

  expect(await lines('false')).toEqual([]);
  expect(await lines('true')).toEqual([
    expect.objectContaining({
      level: 'error',
      res: expect.objectContaining({ statusCode: 500 }) as unknown,
      msg: 'request errored',
      err: expect.objectContaining({
        message: expect.stringContaining('WRONGTYPE') as unknown,
      }) as unknown,
    }),
  ]);
});

describe('the line of an answer', () => {
  test('has the duration of the request, including its wait', async () => {
    const app = await startApp({ ...ONE_AN_HOUR, LOG_2XX: 'true' });
    const key = uniqueKey();
    const holder = await approve(app.url, key);
    const sentAt = performance.now();
    const waiting = begin(app.url, 'POST', `/rate/${key}?canWait=true`);
    await untilWaiting(app.url, key, 1);
    const waitingAt = performance.now();
    await until(() => performance.now() - waitingAt > 20);
    await send(app.url, 'DELETE', `/rate/${key}/${holder}`);
    await waiting.answer;
    const answeredAt = performance.now();
    await app.stop(0);

    const [line] = linesTo(app.log, `/rate/${key}?canWait=true`);
    expect(line?.responseTime).toBeGreaterThanOrEqual(20);
    expect(line?.responseTime).toBeLessThanOrEqual(Math.ceil(answeredAt - sentAt) + 1);
  });

  test('has the headers of the request, but no secret among them', async () => {
    const app = await startApp({ LOG_2XX: 'true' });
    const secrets = {
      authorization: 'Bearer secret-1',
      'proxy-authorization': 'Basic secret-2',
      cookie: 'session=secret-3',
      'x-api-key': 'secret-4',
      'x-amz-security-token': 'secret-5',
    };
    await send(app.url, 'GET', '/healthz', { 'User-Agent': 'the test', ...secrets });
    await app.stop(0);

    const [line] = linesTo(app.log, '/healthz');
    const redacted = Object.keys(secrets).map((name) => [name, '[Redacted]']);
    expect((line?.req as { headers: object }).headers).toMatchObject({
      'user-agent': 'the test',
      ...Object.fromEntries(redacted),
    });
    expect(JSON.stringify(app.log)).not.toContain('secret-');
  });
});

test('no line has a request id', async () => {
  const app = await startApp({
    ...ONE_AN_HOUR,
    LOG_2XX: 'true',
    LOG_4XX: 'true',
    LOG_LEVEL: 'trace',
  });
  const [key, id, other] = [uniqueKey(), randomUUID(), randomUUID()];
  const path = `/rate/${key}`;
  await send(app.url, 'POST', `${path}?requestId=${id}&holdMillis=5000`);
  await send(app.url, 'PUT', `${path}/${id}`);
  await send(app.url, 'DELETE', `${path}/${id.toUpperCase()}?x=1`);
  await send(app.url, 'GET', `${path}/${id.replace('-', '%2d')}`);
  await send(app.url, 'POST', `${path}?requestId=${id}`);
  const waiting = begin(app.url, 'POST', `${path}?requestId=${other}&canWait=true`);
  await untilWaiting(app.url, key, 1);
  await send(app.url, 'DELETE', `${path}/${other}`);
  await waiting.answer;
  await app.stop(0);

  const urls = app.log.flatMap(({ req }) => (req as { url: string } | undefined)?.url ?? []);
  expect(urls.filter((url) => url.startsWith(path))).toEqual([
    `${path}?requestId=[Redacted]&holdMillis=5000`,
    `${path}/[Redacted]`,
    `${path}/[Redacted]?[Redacted]`,
    `${path}/[Redacted]`,
    `${path}?requestId=[Redacted]`,
    // In the order of their answers.
    expect.any(String),
    expect.any(String),
  ]);
  const text = JSON.stringify(app.log).toLowerCase();
  for (const secret of [id, other]) expect(text).not.toContain(secret.slice(0, 8));
});

describe('the path of a request in the log has no request id', () => {
  const ID = randomUUID();
  const app = useApp(() => ({ LOG_2XX: 'true', LOG_4XX: 'true', LOG_5XX: 'true' }));

  test.each([
    ['/rate/a/b/{id}', '/rate/a/b/[Redacted]'],
    ['//rate/a/{id}', '//rate/a/[Redacted]'],
    ['/Rate/a/{id}', '/Rate/a/[Redacted]'],
    ['/%72ate/a/{id}', '/%72ate/a/[Redacted]'],
    ['/v1/rate/a/{id}/', '/v1/rate/a/[Redacted]/'],
    ['/rate//{id}', '/rate//[Redacted]'],
    ['/rate%2Fa%2F{id}', '/[Redacted]'],
    ['/debug/a/{id}', '/debug/a/[Redacted]'],
    ['/rate/a/x{id}%20', '/rate/a/[Redacted]'],
    ['/rate/a/{digits}', '/rate/a/[Redacted]'],
    // A key, which the line has as `key` as well.
    ['/rate/{id}', `/rate/${ID}`],
    [`/rate/{id}/{id}`, `/rate/${ID}/[Redacted]`],
  ])('%s', async (template, logged) => {
    const path = template.replaceAll('{id}', ID).replace('{digits}', ID.replaceAll('-', ''));
    const correlationId = uniqueKey();
    const headers = { 'X-Forwarded-Uri': path, Referer: `http://localhost${path}?a` };
    await send(app.url, 'DELETE', path, { ...headers, 'X-Correlation-ID': correlationId });
    const { req } = await app.logged((line) => line.correlationId === correlationId && !!line.req);

    expect(req).toMatchObject({
      url: logged,
      headers: {
        'x-forwarded-uri': logged,
        referer: `http://localhost${logged}?[Redacted]`,
      },
    });
  });
});

describe('the query of a request in the log', () => {
  const SECRET = 's3cr3t';

  const app = useApp(() => ({ LOG_2XX: 'true', LOG_4XX: 'true', LOG_LEVEL: 'trace' }));

  async function loggedRequest(path: string, headers: Record<string, string> = {}) {
    const id = uniqueKey();
    await send(app.url, 'POST', path, { ...headers, 'X-Correlation-ID': id });
    const line = await app.logged(({ correlationId, req }) => correlationId === id && !!req);
    expect(JSON.stringify(app.log)).not.toContain(SECRET);
    return line.req as { url: string; headers: Record<string, string> };
  }

  test.each([
    [`?token=${SECRET}`, '?[Redacted]'],
    [`?${SECRET}`, '?[Redacted]'],
    [
      `?canWait=false&access_token=${SECRET}&maxRequests=5`,
      '?canWait=false&[Redacted]&maxRequests=5',
    ],
    [`?maxrequests=${SECRET}`, '?[Redacted]'],
    [`?a&${SECRET}=`, '?[Redacted]&[Redacted]'],
    [`?canWait=false#${SECRET}`, '?canWait=false&[Redacted]'],
    [`#${SECRET}`, '?[Redacted]'],
    ['?', '?'],
  ])('%s is %s', async (query, logged) => {
    const key = uniqueKey();
    expect((await loggedRequest(`/rate/${key}${query}`)).url).toBe(`/rate/${key}${logged}`);
  });

  test.each(['/unknown', '/healthz', '/debug', '/rate', '/rate/a/b'])('of %s', async (path) => {
    expect((await loggedRequest(`${path}?key=a&token=${SECRET}`)).url).toBe(
      `${path}?key=a&[Redacted]`,
    );
  });

  test('is left out of headers with a URL', async () => {
    const { headers } = await loggedRequest('/healthz', {
      Referer: `http://localhost/page?token=${SECRET}`,
      'X-Forwarded-Uri': `/rate/a?token=${SECRET}&canWait=true`,
      'X-Original-Url': `http://a/b#${SECRET} and http://a?${SECRET}`,
      'Sec-CH-UA-Mobile': '?0',
    });

    expect(headers).toMatchObject({
      referer: 'http://localhost/page?[Redacted]',
      'x-forwarded-uri': '/rate/a?[Redacted]',
      'x-original-url': 'http://a/b?[Redacted] and http://a?[Redacted]',
      'sec-ch-ua-mobile': '?0',
    });
  });
});

test('the line of an internal error has no properties that a library attached to its error', async () => {
  const limiter: Limiter = smallLimiter();
  const command = { name: 'auth', args: ['user', 'secret-password'] };
  limiter.check = () => Promise.reject(Object.assign(new Error('not allowed'), { command }));
  const { logger, lines } = recordLog();
  const app = await serve(httpAppOver(limiter, { logger }));
  const closed = app.answerCloses();
  expect((await send(app.url, 'POST', '/rate/key')).status).toBe(500);
  await closed;
  await app.close();

  expect(lines).toMatchObject([{ level: 'error', err: { message: 'not allowed' } }]);
  expect(JSON.stringify(lines)).not.toContain('secret-');
});

describe('a body that is cut short by a fault', () => {
  /** Asks for a listing that fails after its first page. @returns the log lines */
  async function linesOfCutBody(environment: Record<string, string>): Promise<readonly LogLine[]> {
    const { limiter, fail } = limiterWithSlowList();
    const { logger, lines } = recordLog();
    const app = await serve(httpAppOver(limiter, { logger, settings: parseSettings(environment) }));
    const closed = app.answerCloses();
    const connection = await openConnection(app.url);
    connection.write(requestText('GET', '/debug'));
    await connection.receives(/Instances/);
    fail(new Error('the list has ended'));
    await closed;
    await app.close();
    return lines;
  }

  test.each(['true', 'false'])('is one error in the log if LOG_2XX=%s', async (log2xx) => {
    expect(await linesOfCutBody({ LOG_2XX: log2xx })).toEqual([
      expect.objectContaining({
        level: 'error',
        req: expect.objectContaining({ url: '/debug' }) as unknown,
        err: expect.objectContaining({ message: 'the list has ended' }) as unknown,
      }),
    ]);
  });

  test.each(['true', 'false'])('is not logged if LOG_5XX=false, LOG_2XX=%s', async (log2xx) => {
    expect(await linesOfCutBody({ LOG_2XX: log2xx, LOG_5XX: 'false' })).toEqual([]);
  });
});

test('an answer has no line if its client disconnects before its end', async () => {
  const { limiter, end } = limiterWithSlowList();
  const { logger, lines } = recordLog();
  const settings = parseSettings({ LOG_2XX: 'true', LOG_4XX: 'true' });
  const app = await serve(httpAppOver(limiter, { logger, settings }));
  const closed = app.answerCloses();
  const connection = await openConnection(app.url);
  connection.write(requestText('GET', '/debug'));
  await connection.receives(/Instances/);
  connection.disconnect();
  await closed;
  end();
  await app.close();

  expect(linesTo(lines, '/debug')).toEqual([]);
});

test('each request on a kept connection is logged once, with its own status', async () => {
  const app = await startApp({ ...ONE_AN_HOUR, LOG_2XX: 'true', LOG_4XX: 'true' });
  const key = uniqueKey();
  const connection = await openConnection(app.url);
  connection.write(requestText('POST', `/rate/${key}?maxRequests=1`).repeat(3));
  await connection.receives(/(?:[^]*X-Correlation-ID){3}/);
  connection.disconnect();
  await app.stop(0);

  const statuses = linesTo(app.log, `/rate/${key}?maxRequests=1`).map(({ res }) => res);
  expect(statuses).toMatchObject([{ statusCode: 200 }, { statusCode: 429 }, { statusCode: 429 }]);
});

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

describe('X-Correlation-ID', () => {
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000', LOG_2XX: 'true' }));

  async function correlationOf(value: string): Promise<string> {
    const answer = await send(app.url, 'GET', `/rate/${uniqueKey()}`, {
      'X-Correlation-ID': value,
    });
    expect(answer.status).toBe(200);
    return String(answer.headers['x-correlation-id']);
  }

  test.each([
    ['empty', ''],
    ['129 characters', 'x'.repeat(129)],
    ['many characters', 'x'.repeat(5000)],
    ['with a tab', 'a\tb'],
    ['with a C1 control character', 'a\u0085b'],
  ])('that is %s is replaced', async (_kind, value) => {
    expect(await correlationOf(value)).toMatch(UUID);
  });

  test('that is sent twice is one value, the same in the answer and in the log', async () => {
    const [first, second] = [uniqueKey(), uniqueKey()];
    const connection = await openConnection(app.url);
    connection.write(
      'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' +
        `X-Correlation-ID: ${first}\r\nX-Correlation-ID: ${second}\r\n\r\n`,
    );
    await connection.closed;

    expect(connection.received).toMatch(/^HTTP\/1\.1 200 /);
    const echoed = connection.received.match(/^X-Correlation-ID: .*$/gm);
    expect(echoed).toHaveLength(1);
    const correlationId = echoed![0].slice('X-Correlation-ID: '.length);
    await app.logged((line) => line.correlationId === correlationId);
  });
});

describe('the ids of a trace in the log', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startApp({ ...ONE_AN_HOUR, LOG_2XX: 'true', LOG_4XX: 'true' });
  });

  test("the line of a request has the ids of its caller's span, even if Sluice does not trace it", async () => {
    const caller = callersSpan();
    await send(app.url, 'GET', '/healthz', caller.headers);

    expect(await app.logged(({ msg }) => msg === 'request completed')).toMatchObject({
      trace_id: caller.traceId,
      span_id: caller.spanId,
      trace_flags: '01',
    });
  });

  test("both lines of a bulk request have the ids of its caller's span", async () => {
    const caller = callersSpan();
    const key = uniqueKey();
    await checkMany(app.url, [{ key }, { key }], caller.headers);
    await app.stop(0);

    const lines = app.log.filter((line) => line.trace_id === caller.traceId);
    expect(lines.map(({ msg }) => msg)).toEqual([
      'elements of a bulk request denied or rejected',
      'request completed',
    ]);
  });
});
