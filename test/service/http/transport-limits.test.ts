import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import type { Timeouts } from '../../../src/net/timeouts.js';
import { startTestApp } from '../../support/app.js';
import { expectTransportError } from '../../support/expect-transport-error.js';
import { approvedId, ratePath, send } from '../../support/http-client.js';
import { fullKey, untilWaiting, useHttpServices } from '../../support/http-service.js';
import { openConnection, type RawConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const ONE_HOUR = 3_600_000;

/** For tests in which every client is to be cut. */
const SHORT: Timeouts = {
  headMillis: 100,
  requestMillis: 100,
  idleMillis: ONE_HOUR,
  checkMillis: 20,
};
/** For tests in which other clients must have sent their requests before one is cut. */
const LONGER: Timeouts = { ...SHORT, headMillis: 2000, requestMillis: 2000 };

const startService = useHttpServices();

describe('a client that takes too long', () => {
  test.each([
    ['has sent nothing', ''],
    ['has sent a part of the first line', 'POST /ra'],
    ['has sent no end of the headers', requestText('POST', '/rate/key').slice(0, -2)],
  ])('and %s is cut with a 408', async (_what, text) => {
    const service = await startService({ timeouts: SHORT });
    const connection = await openConnection(service.url);
    connection.write(text);
    await connection.closed;

    const correlationId = expectTransportError(connection.received, '408 Request Timeout');
    expect(service.unreadable).toEqual([
      {
        status: 408,
        errorCode: 'REQUEST_TIMEOUT',
        code: 'ERR_HTTP_REQUEST_TIMEOUT',
        correlationId,
      },
    ]);
  });

  test('is cut even if it sends a byte now and then', async () => {
    const service = await startService({ timeouts: SHORT });
    const connection = await openConnection(service.url);
    connection.write('POST /rate/key HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
    const drip = setInterval(() => {
      connection.write('x');
    }, 20);
    await connection.closed;
    clearInterval(drip);

    expectTransportError(connection.received, '408 Request Timeout');
  });

  test('over the body of a check that waits is cut, and loses its place', async () => {
    const service = await startService({ timeouts: LONGER });
    const { key } = await fullKey(service);
    const connection = await openConnection(service.url);
    connection.write(
      `${requestText('POST', `${ratePath(key)}?canWait=true`, { 'Content-Length': '10' })}x`,
    );
    await untilWaiting(service, 1);
    await connection.closed;

    expectTransportError(connection.received, '408 Request Timeout');
    await untilWaiting(service, 0);
  });

  test('over the body of a check that was answered is cut, without another answer', async () => {
    const service = await startService({ timeouts: LONGER });
    const connection = await openConnection(service.url);
    connection.write(`${requestText('POST', ratePath(uniqueKey()), { 'Content-Length': '10' })}x`);
    await connection.receives(/request_id/);
    await connection.closed;

    expect(connection.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(service.unreadable).toEqual([]);
  });

  test('over its second request is cut with a 408 for that request', async () => {
    const service = await startService({ timeouts: LONGER });
    const connection = await openConnection(service.url);
    connection.write(requestText('GET', '/healthz'));
    await connection.receives(/OK$/);
    connection.write('GET ');
    await connection.closed;

    const [, second] = connection.received.split('\r\n\r\nOK');
    expectTransportError(second!, '408 Request Timeout');
  });
});

describe('requests that wait longer than the time limit of a request', () => {
  const LARGE = 'x'.repeat(4 * 1024 * 1024);
  const BODIES: [headers: Record<string, string>, body: string][] = [
    [{}, ''],
    [{ 'Content-Length': '4' }, 'body'],
    [{ 'Transfer-Encoding': 'chunked' }, '4\r\nbody\r\n0\r\n\r\n'],
    [{ 'Content-Length': String(LARGE.length) }, LARGE],
  ];

  test('are answered when their turn comes, with a body and without', async () => {
    const service = await startService({ timeouts: LONGER });
    const { key, holder } = await fullKey(service);
    const waiting: RawConnection[] = [];
    for (const [headers, body] of BODIES) {
      const connection = await openConnection(service.url);
      connection.write(requestText('POST', `${ratePath(key)}?canWait=true`, headers) + body);
      waiting.push(connection);
      await untilWaiting(service, waiting.length);
    }
    // When this connection is cut, any earlier one with a time limit would also have been cut.
    const sentinel = await openConnection(service.url);
    await sentinel.closed;
    expectTransportError(sentinel.received, '408 Request Timeout');
    let given = holder;
    for (const connection of waiting) {
      await service.limiter.release(key, given);
      await connection.receives(/request_id/);
      expect(connection.received).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      given = /"request_id":"(.*)"/.exec(connection.received)![1]!;
      connection.disconnect();
    }
  });
});

describe('a body without an end', () => {
  const CHUNK = `10000\r\n${'x'.repeat(0x10000)}\r\n`;

  interface Flood {
    readonly socket: Socket;
    readonly sent: { readonly chunks: number };
    readonly received: () => string;
    readonly closed: Promise<void>;
  }

  /** Sends chunks for as long as they are taken, and until the connection is closed. */
  function flood(socket: Socket): { readonly chunks: number } {
    const sent = { chunks: 0 };
    const next = (): void => {
      if (!socket.writable) return;
      sent.chunks += 1;
      socket.write(CHUNK, next);
    };
    next();
    return sent;
  }

  async function startFlooding(
    url: string,
    path: string,
    headers: Record<string, string>,
  ): Promise<Flood> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await once(socket, 'connect');
    // The service may close the connection with a reset.
    socket.on('error', () => undefined);
    const closed = new Promise<void>((resolve) => {
      socket.once('close', () => {
        resolve();
      });
    });
    let received = '';
    socket.setEncoding('latin1').on('data', (text: string) => (received += text));
    socket.write(requestText('POST', path, headers));
    return { socket, sent: flood(socket), received: () => received, closed };
  }

  describe.each([
    ['in chunks', { 'Transfer-Encoding': 'chunked' }],
    ['of 10 GB', { 'Content-Length': '10000000000' }],
  ])('(%s)', (_what, headers) => {
    /** More than all buffers between client and service hold. */
    const MANY_CHUNKS = 1000;

    test('is read and discarded while its check waits, and the check is approved in its turn', async () => {
      const service = await startService();
      const { key, holder } = await fullKey(service);
      const path = `${ratePath(key)}?canWait=true`;
      const { socket, sent, received } = await startFlooding(service.url, path, headers);
      await untilWaiting(service, 1);
      await until(() => sent.chunks > MANY_CHUNKS);
      await service.limiter.release(key, holder);
      await until(() => received().includes('request_id'));

      expect(received()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      socket.destroy();
    });

    test('does not hide that the client of a waiting check disconnects', async () => {
      const service = await startService();
      const { key } = await fullKey(service);
      const path = `${ratePath(key)}?canWait=true`;
      const { socket, sent } = await startFlooding(service.url, path, headers);
      await untilWaiting(service, 1);
      await until(() => sent.chunks > MANY_CHUNKS);
      socket.destroy();

      await untilWaiting(service, 0);
    });

    test('is cut after the time limit, and its check loses its place', async () => {
      const service = await startService({ timeouts: LONGER });
      const { key } = await fullKey(service);
      const path = `${ratePath(key)}?canWait=true`;
      const { closed } = await startFlooding(service.url, path, headers);
      await untilWaiting(service, 1);
      await closed;

      await untilWaiting(service, 0);
      expect(service.unreadable).toEqual([expect.objectContaining({ status: 408 })]);
    });
  });

  test('that has an end does not block the next request', async () => {
    const service = await startService();
    const connection = await openConnection(service.url);
    const length = 4 * 1024 * 1024;
    connection.write(
      requestText('POST', ratePath(uniqueKey()), { 'Content-Length': String(length) }),
    );
    await connection.receives(/request_id/);
    connection.write('x'.repeat(length) + requestText('GET', '/healthz'));

    await connection.receives(/OK$/);
    connection.disconnect();
  });
});

describe('a request that is large', () => {
  test('in none of its parts is served', async () => {
    const service = await startService();
    const headers = { 'X-Large': 'x'.repeat(15 * 1024) };

    expect((await send(service.url, 'GET', '/healthz', headers)).status).toBe(200);
  });

  test('in its URL is served up to 8192 bytes, and counts nothing above', async () => {
    const service = await startService();
    const key = uniqueKey();
    const path = `${ratePath(key)}?`;
    const longest = path.padEnd(8192, '&');
    expect((await send(service.url, 'POST', `${longest}&`)).status).toBe(414);
    expect(await service.limiter.inspect(key)).toBeUndefined();
    approvedId(await send(service.url, 'POST', longest));
  });
});

test('an idle connection is kept longer than load balancers keep theirs', async () => {
  const app = await startTestApp();
  const connection = await openConnection(app.url);
  connection.write(requestText('GET', '/healthz'));
  await connection.receives(/OK$/);

  expect(connection.received).toMatch(/^Keep-Alive: timeout=75\r$/m);
  await app.stop(0);
});
