import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import { stopInOrder } from '../../../src/app/stop-in-order.js';
import type { Ports } from '../../../src/http/server/ports.js';
import type { KeptAliveServer } from '../../../src/http/server/server.js';
import type { Timeouts } from '../../../src/net/connection-bounds.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { expectTransportError } from '../../support/expect-transport-error.js';
import { approvedId, ratePath, send } from '../../support/http-client.js';
import {
  fullKey,
  smallLimiter,
  untilWaiting,
  useHttpServices,
} from '../../support/http-service.js';
import { scrape } from '../../support/prometheus-text.js';
import { openConnection, type RawConnection, requestText } from '../../support/raw-http.js';
import { KEEP_ALIVE_TIMER, timersOf } from '../../support/tcp-timers.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp, useApps } from '../../support/use-apps.js';
import { useTls } from '../../support/use-tls.js';
import { watchedLimiter } from '../../support/watched-limiter.js';

const ONE_HOUR = 3_600_000;
const startService = useHttpServices();
const startApp = useApps();
const tls = useTls();
const start = useHttpServices();

/** For tests in which every client is to be cut. */
const SHORT: Timeouts = {
  headMillis: 100,
  requestMillis: 100,
  idleMillis: ONE_HOUR,
  checkMillis: 20,
};
/** For tests in which other clients must have sent their requests before one is cut. */
const LONGER: Timeouts = { ...SHORT, headMillis: 2000, requestMillis: 2000 };

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

  test('over the body of a check that was answered is cut, without another answer', async () => {
    const service = await startService({ timeouts: LONGER });
    const connection = await openConnection(service.url);
    connection.write(`${requestText('POST', ratePath(uniqueKey()), { 'Content-Length': '10' })}x`);
    await connection.receives(/request_id/);
    await connection.closed;

    expect(connection.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
    expect(service.unreadable).toEqual([]);
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
      await service.limiter.ask('release', { key, requestId: given });
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
      await service.limiter.ask('release', { key, requestId: holder });
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
    expect(await service.limiter.ask('inspect', { key })).toBeUndefined();
    approvedId(await send(service.url, 'POST', longest));
  });
});

test('an idle connection is kept longer than load balancers keep theirs', async () => {
  const app = await startApp();
  const connection = await openConnection(app.url);
  connection.write(requestText('GET', '/healthz'));
  await connection.receives(/OK$/);

  expect(connection.received).toMatch(/^Keep-Alive: timeout=75\r$/m);
});

const MESSAGE = 'connections dropped';
const DROPPED = 'ratelimit_dropped_connections_total';

describe('a port with MAX_CONNECTIONS=2', () => {
  let app: TestApp;
  let connections: RawConnection[];
  beforeEach(async () => {
    app = await startTestApp({ MAX_CONNECTIONS: '2', ADMIN_PORT: '0' });
    connections = [await answered(), await answered()];
  });
  afterEach(async () => {
    for (const connection of connections) connection.disconnect();
    await app.stop(0);
  });

  async function answered(): Promise<RawConnection> {
    const connection = await openConnection(app.url);
    connection.write(requestText('GET', '/healthz'));
    await connection.receives(/OK$/);
    return connection;
  }

  async function expectDropped(): Promise<void> {
    const connection = await openConnection(app.url);
    await connection.closed;

    expect(connection.received).toBe('');
  }

  function dropsLogged(): number[] {
    return app.log
      .filter(({ msg }) => msg === MESSAGE)
      .map(({ dropped }) => (dropped as { too_many_connections: number }).too_many_connections);
  }

  test('drops a third connection, counts it, and goes on serving the two', async () => {
    await expectDropped();
    connections[0]!.write(requestText('GET', '/healthz'));
    await connections[0]!.receives(/OK[^]*OK$/);

    const all = await scrape(app.adminUrl);
    expect(all.value(DROPPED, { reason: 'too_many_connections' })).toBe(1);
  });

  test('accepts another connection when one has ended', async () => {
    connections[0]!.disconnect();
    await until(async () => {
      try {
        return (await send(app.url, 'GET', '/healthz')).status === 200;
      } catch {
        return false;
      }
    });
  });

  test('does not count the connections of the admin port', async () => {
    expect((await send(app.adminUrl, 'GET', '/healthz')).status).toBe(200);
  });

  test('logs the first drop at once, and further drops in one line a second', async () => {
    const beganAt = performance.now();
    for (let round = 0; round < 10; round += 1) await expectDropped();
    await until(() => dropsLogged().reduce((sum, dropped) => sum + dropped, 0) === 10);
    const seconds = (performance.now() - beganAt) / 1000;

    const [first, ...further] = dropsLogged();
    expect(first).toBe(1);
    expect(further.length).toBeLessThanOrEqual(seconds);
  });
});

describe.each([
  ['HTTP', () => ({})],
  ['HTTPS', () => tls.settings],
])('a host that vanishes (%s)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), ADMIN_PORT: '0' }));

  test.each([
    ['service', () => app.url],
    ['admin', () => app.adminUrl],
  ])('is noticed within a minute on the %s port: TCP asks after 45 s', async (_port, url) => {
    const connection = await openConnection(url().replace('https:', 'http:'));
    const [timer] = await until(async () => {
      const timers = await timersOf(url(), 'server');
      return timers.length > 0 && timers;
    });
    connection.disconnect();

    expect(timer!.kind).toBe(KEEP_ALIVE_TIMER);
    expect(timer!.seconds).toBeLessThanOrEqual(45);
  });
});

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

/** Opens connections, gets one answer on each, and keeps them open. */
async function keepAlive({ url }: { url: string }, count: number): Promise<RawConnection[]> {
  const open = async (): Promise<RawConnection> => {
    const connection = await openConnection(url);
    // At once: on a busy machine the others take longer to open than a new connection may be silent.
    connection.write(requestText('POST', ratePath(uniqueKey())));
    await connection.receives(/request_id/);
    return connection;
  };
  return Promise.all(Array.from({ length: count }, open));
}

/** The last answer on a connection. */
function lastAnswer({ received }: RawConnection): string {
  return received.slice(received.lastIndexOf('HTTP/1.1 '));
}

describe.each([
  ['HTTP', () => ({})],
  ['HTTPS', () => tls.settings],
])('a replica that stops (%s)', (_name, settings) => {
  test('answers requests that were sent on idle connections before it closed them', async () => {
    const app = await startTestApp(settings());
    const connections = await keepAlive(app, 300);
    for (const connection of connections) {
      connection.write(requestText('POST', ratePath(uniqueKey())));
    }
    await app.stop(0);
    await Promise.all(connections.map(({ closed }) => closed));

    for (const connection of connections) {
      const answer = lastAnswer(connection);
      expect(connection.received.match(/request_id/g)).toHaveLength(2);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
      expect(answer).toMatch(/^Connection: close\r$/m);
    }
  });
});
/** The only port, with the parts that a stop does not use. */
const withUnused = (server: KeptAliveServer): Ports => ({
  ...server,
  adminPort: undefined,
  startDraining: () => undefined,
  cutConnections: () => {
    server.cutConnections();
    return Promise.resolve();
  },
});

test('idle connections are closed gradually, and at once in a hurry', async () => {
  const service = await start();
  const connections = await keepAlive(service, 50);
  let closed = 0;
  for (const connection of connections) void connection.closed.then(() => (closed += 1));
  const hurry = new AbortController();
  const ended = service.server.endIdle(ONE_HOUR, hurry.signal);
  await until(() => closed > 0);

  const last = connections.at(-1)!;
  last.write(requestText('GET', '/healthz'));
  await last.receives(/OK$/);
  expect(closed).toBeLessThan(10);

  hurry.abort();
  await ended;
  await until(() => closed === connections.length - 1);
  // It was used, and its answers ask for its end while a replica stops.
  last.write(requestText('GET', '/healthz'));
  await last.receives(/OK[^]*OK$/);
});

test('only idle connections are closed', async () => {
  const service = await start();
  const { key } = await fullKey(service);
  const [idle, halfSent, waiting] = await keepAlive(service, 3);
  const silent = await openConnection(service.url);
  halfSent!.write('GET /healthz HTTP/1.1\r\nHost:');
  waiting!.write(requestText('POST', `/rate/${key}?canWait=true`));
  await untilWaiting(service, 1);
  await service.server.endIdle(0);
  await idle!.closed;

  halfSent!.write(' test\r\n\r\n');
  await halfSent!.receives(/OK$/);
  silent.write(requestText('GET', '/healthz'));
  await silent.receives(/OK$/);
  expect(service.limiter.waiting()).toBe(1);
});

test('only waiters get a 503 from a replica that stops: other connections are closed before', async () => {
  const limiter = smallLimiter();
  const service = await start({ limiter });
  const { key } = await fullKey(service);
  const [waiting, halfSent] = await keepAlive(service, 2);
  const silent = await openConnection(service.url);
  halfSent!.write('POST /rate/half-sent HTTP/1.1\r\nHost:');
  waiting!.write(requestText('POST', `/rate/${key}?canWait=true`));
  await untilWaiting(service, 1);
  const close = limiter.close.bind(limiter);
  limiter.close = async () => {
    silent.write(requestText('POST', ratePath(uniqueKey())));
    halfSent!.write(' test\r\n\r\n');
    await close();
  };
  await stopInOrder(withUnused(service.server), limiter, 0, undefined);
  await Promise.all([waiting, halfSent, silent].map((connection) => connection!.closed));

  expect(lastAnswer(waiting!)).toMatch(/^HTTP\/1\.1 503 /);
  expect(lastAnswer(halfSent!)).toMatch(/^HTTP\/1\.1 200 /);
  expect(silent.received).toBe('');
});
