import { gzipSync } from 'node:zlib';

import type { Timeouts } from '../../../src/net/timeouts.js';
import { callText, checkMany, JSON_HEADERS, sendBody } from '../../support/bulk-client.js';
import { expectTransportError } from '../../support/expect-transport-error.js';
import { ratePath, send } from '../../support/http-client.js';
import { untilWaiting, useHttpServices } from '../../support/http-service.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { blockedLimiter, watchedLimiter } from '../../support/watched-limiter.js';

const MAX_BYTES = 1024 * 1024;
const SHORT: Timeouts = {
  headMillis: 1000,
  requestMillis: 1000,
  idleMillis: 3_600_000,
  checkMillis: 20,
};
const startService = useHttpServices();

const ARRAY = 'the body must be a JSON array';

describe('a body that is rejected', () => {
  const key = uniqueKey();
  const good = JSON.stringify([{ key }]);
  const CASES: [
    what: string,
    status: number,
    error: string,
    body: string | Buffer,
    headers?: Record<string, string>,
  ][] = [
    ['empty', 400, ARRAY, ''],
    ['white space', 400, ARRAY, ' \n'],
    ['cut', 400, ARRAY, good.slice(0, -1)],
    ['followed by more', 400, ARRAY, `${good},`],
    ['twice', 400, ARRAY, good + good],
    ['JSON with a comment', 400, ARRAY, `${good}//`],
    ['a trailing comma', 400, ARRAY, good.replace(']', ',]')],
    ['an object', 400, ARRAY, JSON.stringify({ key })],
    ['null', 400, ARRAY, 'null'],
    ['a text', 400, ARRAY, JSON.stringify(good)],
    ['a number', 400, ARRAY, '1'],
    ['a form', 400, ARRAY, `key=${key}`],
    ['as deep as it can be', 400, ARRAY, '['.repeat(MAX_BYTES)],
    ['a byte order mark', 400, ARRAY, `\ufeff${good}`],
    ['of UTF-16', 400, ARRAY, Buffer.from(good, 'utf16le')],
    [
      'not of UTF-8',
      400,
      'the body must be JSON in UTF-8',
      Buffer.from('[{"key":"\xff"}]', 'latin1'),
    ],
    [
      'of 1001 elements',
      400,
      'the body must be an array of at most 1000, not 1001',
      JSON.stringify(Array(1001).fill({ key })),
    ],
    ['too large', 413, 'the body must be at most 1048576 bytes', good.padEnd(MAX_BYTES + 1)],
    [
      'plain text',
      415,
      'Content-Type must be application/json',
      good,
      { 'Content-Type': 'text/plain' },
    ],
    ['of no type', 415, 'Content-Type must be application/json', Buffer.from(good), {}],
    [
      'of another type that begins alike',
      415,
      'Content-Type must be application/json',
      good,
      { 'Content-Type': 'application/json-patch+json' },
    ],
    [
      'compressed',
      415,
      'Content-Encoding must be identity',
      gzipSync(good),
      { ...JSON_HEADERS, 'Content-Encoding': 'gzip' },
    ],
  ];

  test.each(CASES.map(([what, status, ...more]) => [what, status, more] as const))(
    'because it is %s gets a %d, and nothing is decided',
    async (_what, status, [error, body, headers = JSON_HEADERS]) => {
      const { limiter, asked } = watchedLimiter();
      const service = await startService({ limiter });
      for (const method of ['POST', 'DELETE']) {
        const answer = await sendBody(service.url, method, body, headers);

        expect([answer.status, answer.json()]).toEqual([status, { error }]);
        expect(answer.headers['content-type']).toBe('application/json');
      }
      expect(asked).toEqual([]);
    },
  );

  test.each(['canWait=true', 'canWait=false', 'maxRequests=5', 'maxRequestsInQueue=x'])(
    'because its URL has %s gets a 400',
    async (query) => {
      const { limiter, asked } = watchedLimiter();
      const service = await startService({ limiter });
      const answer = await fetch(`${service.url}/rate?${query}`, {
        method: 'POST',
        headers: JSON_HEADERS,
        body: good,
      });

      expect(answer.status).toBe(400);
      expect(await answer.json()).toEqual({
        error: `${query.split('=')[0]!} must be left out of the URL`,
        code: 'INVALID_PARAMETER',
      });
      expect(asked).toEqual([]);
    },
  );
});

test('a thousand of the longest keys are accepted', async () => {
  const service = await startService();
  const elements = Array.from({ length: 1000 }, (_, i) => ({
    key: `${i}-${uniqueKey()}`.padEnd(512, 'x'),
    maxRequests: 1_000_000_000,
    maxRequestsInQueue: 100_000,
  }));

  const results = await checkMany(service.url, elements);
  expect(new Set(results.map(({ status }) => status))).toEqual(new Set([200]));
});

describe('a body in chunks', () => {
  const CHUNKED = { ...JSON_HEADERS, 'Transfer-Encoding': 'chunked' };
  const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

  test('is accepted', async () => {
    const service = await startService();
    const connection = await openConnection(service.url);
    const [start, end] = [`[{"key":"${uniqueKey()}`, '"}]'];
    connection.write(requestText('POST', '/rate', CHUNKED) + chunk(start) + chunk(end) + chunk(''));

    await connection.receives(/200 OK[^]*"request_id"/);
    connection.disconnect();
  });

  test('that becomes too large gets a 413 at its end, and the connection goes on', async () => {
    const { limiter, asked } = watchedLimiter();
    const service = await startService({ limiter });
    const connection = await openConnection(service.url);
    connection.write(requestText('POST', '/rate', CHUNKED));
    for (let sent = 0; sent <= MAX_BYTES; sent += 0x10000)
      connection.write(chunk(' '.repeat(0x10000)));
    connection.write(chunk('') + requestText('GET', '/healthz'));

    await connection.receives(/^HTTP\/1\.1 413 [^]*OK$/);
    connection.disconnect();
    expect(asked).toEqual([]);
  });

  test('without an end is cut in time', async () => {
    const service = await startService({ timeouts: SHORT });
    const connection = await openConnection(service.url);
    connection.write(requestText('POST', '/rate', CHUNKED));
    const drip = setInterval(() => {
      connection.write(chunk(' '));
    }, 20);
    await connection.closed;
    clearInterval(drip);

    expectTransportError(connection.received, '408 Request Timeout');
  });
});

test('a body that does not come is cut in time, and nothing of it is decided', async () => {
  const { limiter, asked } = watchedLimiter();
  const service = await startService({ limiter, timeouts: SHORT });
  const connection = await openConnection(service.url);
  connection.write(callText('POST', [{ key: uniqueKey() }]).slice(0, -1));
  await connection.closed;

  expectTransportError(connection.received, '408 Request Timeout');
  expect(asked).toEqual([]);
});

test('nothing is decided if the client disconnects before the end of its body', async () => {
  const { limiter, asked } = watchedLimiter();
  const service = await startService({ limiter });
  const connection = await openConnection(service.url);
  connection.write(callText('POST', [{ key: uniqueKey() }]).slice(0, -1));
  connection.disconnect();
  await connection.closed;
  const last = uniqueKey();
  await send(service.url, 'POST', ratePath(last));

  expect(asked).toEqual([last]);
});

test('a client that expects a 100 is told to send its body', async () => {
  const service = await startService();
  const connection = await openConnection(service.url);
  const [head = '', body = ''] = callText('POST', [{ key: uniqueKey() }], {
    Expect: '100-continue',
  }).split('\r\n\r\n');
  connection.write(`${head}\r\n\r\n`);
  await connection.receives(/^HTTP\/1\.1 100 Continue\r\n\r\n$/);
  connection.write(body);

  await connection.receives(/HTTP\/1\.1 200 OK[^]*"request_id"/);
  connection.disconnect();
});

describe('pipelined bulk requests', () => {
  test('are answered in their order, among other requests', async () => {
    const service = await startService();
    const connection = await openConnection(service.url);
    const key = uniqueKey();
    connection.write(
      callText('POST', [{ key }, { key: uniqueKey() }]) +
        requestText('POST', ratePath(uniqueKey())) +
        callText('DELETE', [{ key, request_id: 'unknown' }]) +
        callText('POST', []) +
        requestText('GET', '/healthz'),
    );
    await connection.receives(/OK$/);
    connection.disconnect();

    const bodies = connection.received
      .split('HTTP/1.1 ')
      .map((answer) => answer.split('\r\n\r\n')[1]);
    expect(bodies.slice(1)).toEqual([
      expect.stringMatching(/^\[\{"status":200,[^{]*\},\{"status":200,[^{]*\}\]$/),
      expect.stringMatching(/^\{"request_id":"[^"]*"\}$/),
      '[{"status":404,"error":"request not found","code":"REQUEST_NOT_FOUND"}]',
      '[]',
      'OK',
    ]);
  });

  test('keep their bodies while they are deferred, small and large, and requests behind them are served', async () => {
    const { limiter, asked, unblock } = blockedLimiter();
    const service = await startService({ limiter, maxInFlight: 1 });
    const connection = await openConnection(service.url);
    const key = uniqueKey();
    const large = Array.from({ length: 1000 }, () => ({ key: uniqueKey().padEnd(512, 'x') }));
    connection.write(
      requestText('POST', ratePath(key)) +
        callText('POST', [{ key: uniqueKey() }]) +
        callText('POST', large) +
        callText('POST', [{ key }]) +
        requestText('GET', '/healthz'),
    );
    await until(() => service.deferred > 0 && asked.length === 1);
    unblock();
    await connection.receives(/OK$/);
    connection.disconnect();

    expect(connection.received.match(/"request_id"/g)).toHaveLength(1 + 1 + 1000);
    expect(connection.received.match(/"status":429/g)).toHaveLength(1);
    expect(service.deferred).toBe(4);
  });

  test('do not hide that the client of a check that waits disconnects', async () => {
    const service = await startService({ maxInFlight: 1 });
    const key = uniqueKey();
    await send(service.url, 'POST', ratePath(key));
    const connection = await openConnection(service.url);
    const large = Array.from({ length: 1000 }, () => ({ key: uniqueKey().padEnd(512, 'x') }));
    connection.write(requestText('POST', `${ratePath(key)}?canWait=true`));
    await untilWaiting(service, 1);
    connection.write(callText('POST', large) + requestText('GET', '/healthz'));
    connection.disconnect();

    await untilWaiting(service, 0);
  });
});
