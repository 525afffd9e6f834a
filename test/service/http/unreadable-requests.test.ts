import type { Limiter } from '../../../src/limiter/limiter.js';
import { startTestApp } from '../../support/app.js';
import { expectTransportError } from '../../support/expect-transport-error.js';
import { ratePath, send } from '../../support/http-client.js';
import {
  fullKey,
  smallLimiter,
  untilWaiting,
  useHttpServices,
} from '../../support/http-service.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';

const startService = useHttpServices();

/** A limiter whose list of keys goes on until it is told that all are listed. */
function limiterWithSlowList(): { limiter: Limiter; listed: () => void } {
  const limiter = smallLimiter();
  let listed = (): void => undefined;
  const end = new Promise<void>((resolve) => (listed = resolve));
  limiter.list = async function* () {
    yield [];
    await end;
  };
  return { limiter, listed };
}

describe('what is no request', () => {
  test.each([
    ['words', 'let me in\r\n\r\n'],
    ['a method that does not exist', requestText('FETCH', '/rate/key')],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['a header without a name', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n'],
    ['a header with a NUL', requestText('GET', '/healthz', { 'X-Nul': '\0' })],
    ['a length that is no number', requestText('POST', '/rate/key', { 'Content-Length': 'ten' })],
    [
      'two ways to find its end',
      requestText('POST', '/rate/key', { 'Content-Length': '3', 'Transfer-Encoding': 'chunked' }),
    ],
  ])('such as %s is a 400', async (_what, text) => {
    const service = await startService();
    const connection = await openConnection(service.url);
    connection.write(text);
    await connection.closed;

    expectTransportError(connection.received, '400 Bad Request');
    expect(service.unreadable).toEqual([expect.objectContaining({ status: 400 })]);
  });

  test('such as a waiting check with a broken body is a 400, and gives its place up', async () => {
    const service = await startService();
    const { key } = await fullKey(service);
    const connection = await openConnection(service.url);
    const path = `${ratePath(key)}?canWait=true`;
    connection.write(requestText('POST', path, { 'Transfer-Encoding': 'chunked' }));
    await untilWaiting(service, 1);
    connection.write('no number\r\n');
    await connection.closed;

    expectTransportError(connection.received, '400 Bad Request');
    await untilWaiting(service, 0);
  });

  test('and comes behind a waiting check is not answered in its place', async () => {
    const service = await startService();
    const { key } = await fullKey(service);
    const connection = await openConnection(service.url);
    connection.write(requestText('POST', `${ratePath(key)}?canWait=true`));
    await untilWaiting(service, 1);
    connection.write('no request\r\n\r\n');
    await connection.closed;

    expect(connection.received).toBe('');
    await untilWaiting(service, 0);
  });

  test('and comes in the midst of an answer is not put into it', async () => {
    const { limiter, listed } = limiterWithSlowList();
    const service = await startService({ limiter });
    const connection = await openConnection(service.url);
    connection.write(requestText('GET', '/debug'));
    await connection.receives(/"Instances":\{\r\n$/);
    const answered = connection.received;
    connection.write('no request\r\n\r\n');
    await connection.closed;
    listed();

    expect(answered).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(connection.received).toBe(answered);
  });

  test('and belongs to a request whose answer has begun is not put into it', async () => {
    const { limiter, listed } = limiterWithSlowList();
    const service = await startService({ limiter });
    const connection = await openConnection(service.url);
    connection.write(requestText('GET', '/debug', { 'Transfer-Encoding': 'chunked' }));
    await connection.receives(/"Instances":\{\r\n$/);
    const answered = connection.received;
    connection.write('no number\r\n');
    await connection.closed;
    listed();

    expect(answered).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(connection.received).toBe(answered);
  });

  test('and comes after a request with a body is a 400', async () => {
    const service = await startService();
    const connection = await openConnection(service.url);
    const headers = { 'Content-Length': '4' };
    connection.write(`${requestText('POST', ratePath(uniqueKey()), headers)}body`);
    await connection.receives(/request_id"[^]*\}$/);
    const answered = connection.received.length;
    connection.write('no request\r\n\r\n');
    await connection.closed;

    expectTransportError(connection.received.slice(answered), '400 Bad Request');
  });

  test('and is the rest of a request that was answered has no answer of its own', async () => {
    const service = await startService();
    const connection = await openConnection(service.url);
    const headers = { 'Transfer-Encoding': 'chunked' };
    connection.write(requestText('POST', ratePath(uniqueKey()), headers));
    await connection.receives(/request_id/);
    connection.write('no number\r\n');
    await connection.closed;

    expect(connection.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

test('a request that expects what nobody knows is answered as if it did not', async () => {
  const service = await startService();

  expect((await send(service.url, 'GET', '/healthz', { Expect: 'wonders' })).text).toBe('OK');
});

describe('a request without the Host header', () => {
  test('is a 400 with a body, as every error', async () => {
    const service = await startService();
    const key = uniqueKey();
    const connection = await openConnection(service.url);
    connection.write(`POST ${ratePath(key)} HTTP/1.1\r\nConnection: close\r\n\r\n`);
    await connection.closed;

    expect(connection.received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(connection.received).toContain(
      JSON.stringify({ error: 'Host header is required', key }),
    );
    expect(await service.limiter.inspect(key)).toBeUndefined();
  });

  test('is answered where it is HTTP/1.0, which had none', async () => {
    const service = await startService();
    const connection = await openConnection(service.url);
    connection.write('GET /healthz HTTP/1.0\r\n\r\n');
    await connection.closed;

    expect(connection.received).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });
});

test('a request with two Host headers is a 400, and is not counted', async () => {
  const service = await startService();
  const key = uniqueKey();
  const connection = await openConnection(service.url);
  connection.write(
    `POST ${ratePath(key)} HTTP/1.1\r\nHost: one\r\nhOST: one\r\nConnection: close\r\n\r\n`,
  );
  await connection.closed;

  expect(connection.received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(connection.received).toContain(
    JSON.stringify({ error: 'Host header must be given only once', key }),
  );
  expect(await service.limiter.inspect(key)).toBeUndefined();
});

test.each([
  ['true', 1],
  ['false', 0],
])('logs what it could not read where LOG_4XX=%s says so', async (log4xx, lines) => {
  const app = await startTestApp({ LOG_4XX: log4xx });
  const connection = await openConnection(app.url);
  connection.write('no request\r\n\r\n');
  await connection.closed;
  await app.stop(0);

  const correlationId = expectTransportError(connection.received, '400 Bad Request');
  expect(app.log.filter(({ status }) => status === 400)).toEqual(
    Array(lines).fill(
      expect.objectContaining({ level: 'info', correlationId, code: 'HPE_INVALID_METHOD' }),
    ),
  );
});
