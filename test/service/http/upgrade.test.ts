import { ratePath } from '../../support/http-client.js';
import { fullKey, untilWaiting, useHttpServices } from '../../support/http-service.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { watchedLimiter } from '../../support/watched-limiter.js';

const startService = useHttpServices();

const UPGRADE = { Connection: 'Upgrade', Upgrade: 'foo' };

/** How many answers were received. */
function answers(received: string): number {
  return received.match(/^HTTP\/1\.1 /gm)?.length ?? 0;
}

// The connection must end: a client would wait for ever for the answer to a dropped request.
describe.each([
  ['GET', '/healthz', UPGRADE],
  ['POST', '/healthz', { ...UPGRADE, 'Content-Length': '0' }],
  [
    'GET',
    '/healthz',
    { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': '' },
  ],
])('%s %s with an Upgrade', (method, path, headers) => {
  test('is answered, and the connection ends with the answer', async () => {
    const service = await startService();
    const connection = await openConnection(service.url);
    connection.write(requestText(method, path, headers) + requestText('GET', '/healthz'));
    await connection.closed;

    expect(answers(connection.received)).toBe(1);
    expect(connection.received).toMatch(/^Connection: close\r$/m);
  });
});

test('an Upgrade that Connection does not name is ignored', async () => {
  const service = await startService();
  const connection = await openConnection(service.url);
  connection.write(requestText('GET', '/healthz', { Upgrade: 'h2c' }).repeat(2));
  await connection.receives(/OK[^]*OK$/);
  connection.disconnect();
});

test('requests behind a waiting Upgrade are not served, in whatever parts they arrive', async () => {
  const { limiter, asked } = watchedLimiter();
  const service = await startService({ limiter });
  const { key } = await fullKey(service);
  const before = asked.length;
  const connection = await openConnection(service.url);
  const [hidden, body] = [uniqueKey(), uniqueKey()];
  // The parser drops the data that came with the Upgrade, and would read the rest of a body as a request.
  const behind = `POST ${ratePath(hidden)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n`;
  connection.write(requestText('POST', `${ratePath(key)}?canWait=true`, UPGRADE) + behind);
  await untilWaiting(service, 1);
  connection.write(requestText('POST', ratePath(body)));
  const other = await openConnection(service.url);
  other.write(requestText('POST', `${ratePath(key)}?maxRequests=2`));
  await connection.closed;
  other.disconnect();

  expect(answers(connection.received)).toBe(1);
  expect(asked.slice(before)).toEqual([key, key]);
});
