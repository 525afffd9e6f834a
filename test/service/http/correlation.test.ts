import { bothLimiters } from '../../support/both-limiters.js';
import { send } from '../../support/http-client.js';
import { openConnection } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useApp } from '../../support/use-apps.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const redis = useRedis();

describe.each(bothLimiters(redis))('X-Correlation-ID (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), WINDOW_MILLIS: '3600000', LOG_2XX: 'true' }));

  async function correlationOf(value: string): Promise<string> {
    const answer = await send(app.url, 'GET', `/rate/${uniqueKey()}`, {
      'X-Correlation-ID': value,
    });
    expect(answer.status).toBe(200);
    return String(answer.headers['x-correlation-id']);
  }

  test.each([
    ['POST', '/rate/{key}', 200],
    ['POST', '/rate/{key}?maxRequests=x', 400],
    ['GET', '/rate/%zz', 400],
    ['DELETE', '/rate/{key}/unknown', 404],
    ['GET', '/debug', 200],
    ['GET', '/debug/{key}', 200],
    ['GET', '/healthz', 200],
    ['GET', '/unknown', 404],
    ['PUT', '/debug', 405],
    ['HEAD', '/rate/{key}', 405],
  ])('is echoed by %s %s', async (method, path, status) => {
    const correlationId = uniqueKey();
    const answer = await send(app.url, method, path.replace('{key}', uniqueKey()), {
      'X-Correlation-ID': correlationId,
    });

    expect(answer.status).toBe(status);
    expect(answer.headers['x-correlation-id']).toBe(correlationId);
  });

  test('is generated for each request if the client sent none', async () => {
    const ids = await Promise.all(
      [1, 2, 3].map(async () => {
        const { headers } = await send(app.url, 'GET', '/healthz');
        return headers['x-correlation-id'];
      }),
    );

    for (const id of ids) expect(id).toMatch(UUID);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test.each([
    ['one character', 'x'],
    ['128 characters', 'x'.repeat(128)],
    ['spaces and punctuation', 'a b;c="d", {e} %0A ${f}'],
  ])('of %s is kept', async (_kind, value) => {
    expect(await correlationOf(value)).toBe(value);
  });

  test.each([
    ['/rate/key', 'HTTP/1.1'],
    ['/debug', 'HTTP/1.1'],
    ['/debug', 'HTTP/1.0'],
  ])('with letters beyond ASCII comes back byte for byte (%s, %s)', async (path, version) => {
    const correlationId = `Zürich-${uniqueKey()}`;
    const connection = await openConnection(app.url);
    connection.write(
      `GET ${path} ${version}\r\nHost: localhost\r\nConnection: close\r\n` +
        `X-Correlation-ID: ${correlationId}\r\n\r\n`,
    );
    await connection.closed;

    expect(connection.received).toContain(`X-Correlation-ID: ${correlationId}\r\n`);
  });

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
