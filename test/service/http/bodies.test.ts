import { gzipSync } from 'node:zlib';

import { MAX_BODY_BYTES } from '../../../src/http/intake/json-array.js';
import type { Timeouts } from '../../../src/net/connection-bounds.js';
import { BODY_BYTES } from '../../../src/service/callers/body-budget.js';
import type { TestApp } from '../../support/app.js';
import { callText, JSON_HEADERS, sendBody } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { expectTransportError } from '../../support/expect-transport-error.js';
import { ratePath, send } from '../../support/http-client.js';
import { untilWaiting, useHttpServices } from '../../support/http-service.js';
import { openConnection, type RawConnection, requestText } from '../../support/raw-http.js';
import { bearer } from '../../support/tokens.js';
import { sendUnended, type Unended } from '../../support/unended-bodies.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp, useApps } from '../../support/use-apps.js';
import { blockedLimiter, watchedLimiter } from '../../support/watched-limiter.js';

const startService = useHttpServices();
const start = useApps();

const MAX_BYTES = 1024 * 1024;
const SHORT: Timeouts = {
  headMillis: 100,
  requestMillis: 100,
  idleMillis: 3_600_000,
  checkMillis: 20,
};

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
    ['an object', 400, ARRAY, JSON.stringify({ key })],
    ['as deep as it can be', 400, ARRAY, '['.repeat(MAX_BYTES)],
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

describe('parameters in a body', () => {
  const FORM = 'application/x-www-form-urlencoded';
  const JSON_TYPE = 'application/json';

  const app = useApp(() => ({ MAX_IN_FLIGHT_PER_CONNECTION: '1', WINDOW_MILLIS: '3600000' }));

  /** A check with a body. */
  function checkText(
    { key = uniqueKey(), type = '' },
    body: string,
    headers: Record<string, string> = {},
  ): string {
    const length = { 'Content-Length': String(Buffer.byteLength(body)) };
    const ofType = type === '' ? {} : { 'Content-Type': type };
    return requestText('POST', ratePath(key), { ...length, ...ofType, ...headers }) + body;
  }

  /** The answer to a request that is the last on its connection. */
  async function answerTo(text: string): Promise<string> {
    const connection = await openConnection(app.url);
    connection.write(text);
    await connection.closed;
    return connection.received;
  }

  const CLOSE = { Connection: 'close' };

  // The fuzz sends forms and JSON, with parameters and without.
  test.each([
    ['a form in parts', 'multipart/form-data; boundary=x', '--x\r\n\r\n1\r\n--x--\r\n'],
    ['a form of 100 KiB', FORM, 'a'.repeat(100 * 1024)],
    ['white space of 100 KiB', JSON_TYPE, ' '.repeat(100 * 1024)],
  ])('a check is rejected and counts nothing if its body is %s', async (_kind, type, body) => {
    const key = uniqueKey();
    const answer = await answerTo(checkText({ key, type }, body, CLOSE));

    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('{"error":"parameters go in the URL, not in the body","key":');
    expect(await debugState(app.url, key)).toEqual({ Key: key, Found: false });
  });

  test.each([
    ['text', 'text/plain', 'maxRequests=1'],
    ['of no type', '', 'maxRequests=1'],
    ['large, of another type', 'application/octet-stream', 'a'.repeat(100 * 1024)],
    ['of a type that begins alike', 'application/json-patch+json', '{"hits":5}'],
  ])('a check is decided if its body is %s', async (_kind, type, body) => {
    expect(await answerTo(checkText({ type }, body, CLOSE))).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('chunks of a body are put together', async () => {
    const chunked = { 'Transfer-Encoding': 'chunked', 'Content-Type': JSON_TYPE, ...CLOSE };
    const head = requestText('POST', ratePath(uniqueKey()), chunked);

    expect(await answerTo(`${head}1\r\n{\r\n1\r\n}\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await answerTo(`${head}1\r\n{\r\n7\r\n"a":1}\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('requests that are deferred on their connection are rejected for their bodies too, in their order', async () => {
    const key = uniqueKey();
    const connection = await openConnection(app.url);
    connection.write(
      checkText({ key }, '') +
        checkText({ type: FORM }, 'hits=5') +
        checkText({ type: JSON_TYPE }, '{}') +
        checkText({ type: JSON_TYPE }, '{"hits":5}', CLOSE),
    );
    await connection.closed;

    expect(connection.received.match(/(?<=HTTP\/1\.1 )\d+/g)).toEqual(['200', '400', '200', '400']);
  });
});

describe('the budget of bodies', () => {
  const IN_A_SHARE = BODY_BYTES.caller / MAX_BODY_BYTES;
  const IN_ALL = BODY_BYTES.all / MAX_BODY_BYTES;
  /** All but the last byte of bodies that are as large as may be. */
  const NEARLY_ALL = { length: MAX_BODY_BYTES, sent: MAX_BODY_BYTES - 1 };

  let app: TestApp;
  const connections: RawConnection[] = [];
  afterEach(() => {
    for (const connection of connections.splice(0)) connection.disconnect();
  });

  async function begin(unended: Unended): Promise<void> {
    connections.push(...(await sendUnended(app.url, unended)));
  }

  /** The status of a bulk request that is sent as a whole. */
  async function statusOf(headers: Record<string, string> = {}): Promise<number> {
    const body = JSON.stringify([{ key: uniqueKey() }]);
    return (await sendBody(app.url, 'POST', body, { ...JSON_HEADERS, ...headers })).status;
  }

  async function untilStatus(status: number, headers: Record<string, string> = {}): Promise<void> {
    await until(async () => (await statusOf(headers)) === status);
  }

  /** The status of a bulk request from a client with this address. */
  async function statusFrom(address: string): Promise<string> {
    const connection = await openConnection(app.url, address);
    connection.write(callText('POST', [{ key: uniqueKey() }], { Connection: 'close' }));
    await connection.closed;
    return connection.received.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length);
  }

  test('bodies that are announced and do not come keep no other body out', async () => {
    app = await start();
    await begin({ connections: IN_ALL, length: MAX_BODY_BYTES, sent: 0 });

    expect(await statusOf()).toBe(200);
  });

  test('one caller takes at most its share, and gets it back when its clients disconnect', async () => {
    const one = { name: 'one', token: `token-of-one-${uniqueKey()}`, scopes: ['check'] };
    const other = { name: 'other', token: `token-of-other-${uniqueKey()}`, scopes: ['check'] };
    app = await start({}, { tokens: [one, other] });
    await begin({ ...NEARLY_ALL, connections: IN_ALL, headers: bearer(one) });
    await untilStatus(503, bearer(one));

    expect(await statusOf(bearer(other))).toBe(200);
    expect(await statusOf(bearer(one))).toBe(503);

    for (const connection of connections.splice(0)) connection.disconnect();
    await untilStatus(200, bearer(one));
  });

  test('bodies without a valid token take nothing of the budget', async () => {
    const caller = { name: 'one', token: `token-of-one-${uniqueKey()}`, scopes: ['check'] };
    app = await start({}, { tokens: [caller] });
    for (const headers of [{}, bearer({ token: 'unknown' })]) {
      await begin({ ...NEARLY_ALL, connections: IN_A_SHARE, headers });
    }
    await Promise.all(connections.map((connection) => connection.receives(/ 401 /)));
    await begin({ ...NEARLY_ALL, connections: IN_A_SHARE - 1, headers: bearer(caller) });

    expect(await statusOf(bearer(caller))).toBe(200);
  });

  test('without tokens one address takes at most its share', async () => {
    app = await start();
    await begin({ ...NEARLY_ALL, connections: IN_ALL });
    await untilStatus(503);

    expect(await statusFrom('127.0.0.2')).toBe('200');
    expect(await statusFrom('127.0.0.1')).toBe('503');
  });

  test('all bodies together take at most the budget of the port', async () => {
    app = await start();
    const addresses = Array.from({ length: IN_ALL / IN_A_SHARE }, (_, i) => `127.0.0.${i + 1}`);
    // At the same time: each is given up after a while.
    await Promise.all(
      addresses.map((from) => begin({ ...NEARLY_ALL, connections: IN_A_SHARE, from })),
    );

    await until(async () => (await statusFrom('127.0.0.9')) === '503');
  });

  test('the bodies of a connection are read one after the other', async () => {
    const { limiter, asked, unblock } = blockedLimiter();
    const service = await startService({ limiter });
    const call = (key: string): string => {
      const body = JSON.stringify([{ key }]).padEnd(MAX_BODY_BYTES);
      return (
        requestText('POST', '/rate', { ...JSON_HEADERS, 'Content-Length': String(body.length) }) +
        body
      );
    };
    const [first, second, ofOther] = [uniqueKey(), uniqueKey(), uniqueKey()];
    const connection = await openConnection(service.url);
    connection.write(call(first) + call(second));
    await until(() => asked.includes(first));
    const other = await openConnection(service.url);
    other.write(call(ofOther));
    await until(() => asked.includes(ofOther));
    expect(asked).toEqual([first, ofOther]);
    unblock();
    await connection.receives(/200 OK[^]*200 OK/);
    expect(asked).toEqual([first, ofOther, second]);
    connection.disconnect();
    other.disconnect();
  });
});
