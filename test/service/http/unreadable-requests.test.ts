import { startTestApp } from '../../support/app.js';
import { expectTransportError } from '../../support/expect-transport-error.js';
import { ratePath, send } from '../../support/http-client.js';
import { fullKey, untilWaiting, useHttpServices } from '../../support/http-service.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { limiterWithSlowList } from '../../support/slow-list.js';
import { uniqueKey } from '../../support/unique-key.js';

const startService = useHttpServices();

describe('input that is not a request', () => {
  test.each([
    ['words', 'let me in\r\n\r\n'],
    ['a method that does not exist', requestText('FETCH', '/rate/key')],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ['a header without a name', 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n'],
    ['a header with a NUL', requestText('GET', '/healthz', { 'X-Nul': '\0' })],
    [
      'a length that is not a number',
      requestText('POST', '/rate/key', { 'Content-Length': 'ten' }),
    ],
    [
      'two ways to find its end',
      requestText('POST', '/rate/key', { 'Content-Length': '3', 'Transfer-Encoding': 'chunked' }),
    ],
  ])('such as %s gets a 400', async (_what, text) => {
    const service = await startService();
    const connection = await openConnection(service.url);
    connection.write(text);
    await connection.closed;

    expectTransportError(connection.received, '400 Bad Request');
    expect(service.unreadable).toEqual([expect.objectContaining({ status: 400 })]);
  });

  test('such as the broken body of a waiting check gets a 400, and the check loses its place', async () => {
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

  test('behind a waiting check is not answered in place of the check', async () => {
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

  test('in the middle of an answer adds nothing to the answer', async () => {
    const { limiter, end } = limiterWithSlowList();
    const service = await startService({ limiter });
    const connection = await openConnection(service.url);
    connection.write(requestText('GET', '/debug'));
    await connection.receives(/"Instances":\{\r\n$/);
    const answered = connection.received;
    connection.write('no request\r\n\r\n');
    await connection.closed;
    end();

    expect(answered).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(connection.received).toBe(answered);
  });

  test('in the body of a request whose answer has begun adds nothing to the answer', async () => {
    const { limiter, end } = limiterWithSlowList();
    const service = await startService({ limiter });
    const connection = await openConnection(service.url);
    connection.write(requestText('GET', '/debug', { 'Transfer-Encoding': 'chunked' }));
    await connection.receives(/"Instances":\{\r\n$/);
    const answered = connection.received;
    connection.write('no number\r\n');
    await connection.closed;
    end();

    expect(answered).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(connection.received).toBe(answered);
  });

  test('after a request with a body gets a 400', async () => {
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

  test('in the rest of a request that was answered gets no answer of its own', async () => {
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

test('a request with an unknown Expect header is answered as usual', async () => {
  const service = await startService();

  expect((await send(service.url, 'GET', '/healthz', { Expect: 'wonders' })).text).toBe('OK');
});

test.each([
  ['no Host header', ''],
  ['two Host headers', 'Host: one\r\nhOST: one\r\n'],
])('a request with %s gets a 400, and is not counted', async (_what, hosts) => {
  const service = await startService();
  const key = uniqueKey();
  const connection = await openConnection(service.url);
  connection.write(`POST ${ratePath(key)} HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`);
  await connection.closed;

  expect(connection.received).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(await service.limiter.inspect(key)).toBeUndefined();
});

test.each([
  ['true', 1],
  ['false', 0],
])('LOG_4XX=%s also decides whether unreadable requests are logged', async (log4xx, lines) => {
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
