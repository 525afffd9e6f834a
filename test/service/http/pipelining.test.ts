import { once } from 'node:events';
import { connect } from 'node:net';

import type { Timeouts } from '../../../src/net/connection-bounds.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { extent } from '../../support/extent.js';
import { approve, begin, ratePath } from '../../support/http-client.js';
import { useHttpServices } from '../../support/http-service.js';
import { scrape } from '../../support/prometheus-text.js';
import { openConnection, type RawConnection, requestText } from '../../support/raw-http.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import { useTls } from '../../support/use-tls.js';
import { blockedLimiter, watchedLimiter } from '../../support/watched-limiter.js';

const OPERATOR = { name: 'operator', token: 'token-that-may-debug', scopes: ['debug'] };
const tls = useTls();
const startService = useHttpServices();

/** The default bound, how many more are deferred before reading stops, and how many a port defers. */
const BOUND = 100;
const DEFERRED_WHILE_READ = 1000;
const DEFERRED_IN_ALL = 10_000;

const ONE_HOUR = 3_600_000;
const SHORT: Timeouts = {
  headMillis: 2000,
  requestMillis: 2000,
  idleMillis: ONE_HOUR,
  checkMillis: 20,
};

function waitText(key: string): string {
  return requestText('POST', `${ratePath(key)}?canWait=true`);
}

/** Requests whose answers can be told apart by their correlation ids. */
function numbered(count: number, textOf: (headers: Record<string, string>) => string): string {
  return Array.from({ length: count }, (_, i) => textOf({ 'X-Correlation-ID': `n${i}` })).join('');
}

function answeredIds(received: string): string[] {
  return received.match(/(?<=^X-Correlation-ID: n)\d+/gm) ?? [];
}

const STATUS_LINE = 'HTTP/1.1 ';

/** Resolves when `count` requests have been answered. Its error omits the received text, which is too long. */
async function untilAnswered(connection: RawConnection, count: number): Promise<void> {
  let isClosed = false;
  void connection.closed.then(() => (isClosed = true));
  let [answered, seen] = [0, 0];
  await until(() => {
    if (isClosed) throw new Error('closed before all were answered');
    // Counts only new answers: to count all again would take longer than the answers.
    for (let at; (at = connection.received.indexOf(STATUS_LINE, seen)) !== -1; answered += 1) {
      seen = at + STATUS_LINE.length;
    }
    return answered >= count;
  });
}

function inOrder(count: number): string[] {
  return Array.from({ length: count }, (_, i) => String(i));
}

describe('waiting checks on one connection', () => {
  let app: TestApp;
  let key: string;
  async function start(environment: Record<string, string> = {}): Promise<void> {
    app = await startTestApp({
      WINDOW_MILLIS: String(ONE_HOUR),
      MAX_REQUESTS: '1',
      MAX_REQUESTS_IN_QUEUE: '100000',
      ...environment,
    });
    key = uniqueKey();
    await approve(app.url, key);
  }
  afterEach(() => app.stop(0));

  async function metric(name: string, labels?: Record<string, string>): Promise<number> {
    return (await scrape(app.url)).value(name, labels);
  }

  /** The outcome of one more check: its status, or that it waits. */
  async function another(waiting: number): Promise<number | string> {
    const request = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    const outcome = await Promise.race([
      request.answer.then(({ status }) => status),
      untilWaiting(app.url, key, waiting).then(() => 'waits'),
    ]);
    request.disconnect();
    request.answer.catch(() => undefined);
    return outcome;
  }

  test("take at most the connection's share of places", async () => {
    await start({ MAX_WAITERS: String(BOUND + 1) });
    const connection = await openConnection(app.url);
    connection.write(waitText(key).repeat(3 * BOUND));
    await until(
      async () =>
        (await metric('ratelimit_deferred_requests_total')) === 2 * BOUND ||
        (await metric('ratelimit_failed_checks_total', { reason: 'too_many_waiters' })) > 0,
    );
    await untilWaiting(app.url, key, BOUND);

    expect(await another(BOUND + 1)).toBe('waits');
    connection.disconnect();
  });

  test('leave places for others if there are 10,001 of them', async () => {
    await start();
    const connection = await openConnection(app.url);
    connection.write(waitText(key).repeat(10_001));
    const isFull = async () =>
      (await metric('ratelimit_failed_checks_total', { reason: 'too_many_waiters' })) > 0;
    // Not all are read, so a disconnect could not be seen, and the connection may be cut.
    await Promise.race([connection.closed, until(isFull)]);

    expect(await another(1)).toBe('waits');
    connection.disconnect();
  });

  test('free all their places when their client disconnects, and deferred ones are never decided', async () => {
    await start();
    const own = uniqueKey();
    const connection = await openConnection(app.url);
    connection.write(waitText(key).repeat(2 * BOUND) + requestText('POST', ratePath(own)));
    await until(async () => (await metric('ratelimit_deferred_requests_total')) === BOUND + 1);
    await untilWaiting(app.url, key, BOUND);
    connection.disconnect();
    await untilWaiting(app.url, key, 0);
    await approve(app.url, uniqueKey());

    expect(await debugState(app.url, own)).toStrictEqual({ Key: own, Found: false });
    expect(await metric('ratelimit_waiting')).toBe(0);
  });

  test('do not keep a replica from stopping, and deferred ones are not decided', async () => {
    await start();
    const own = uniqueKey();
    const connection = await openConnection(app.url);
    connection.write(waitText(key).repeat(2 * BOUND) + requestText('POST', ratePath(own)));
    await untilWaiting(app.url, key, BOUND);
    await app.stop(0);
    await connection.closed;

    expect(connection.received).toMatch(/^HTTP\/1\.1 503 [^]*Connection: close\r\n/);
    expect(connection.received).not.toContain('request_id');
  });
});

// Over HTTPS Node itself cuts a connection that it stops reading in the middle of decrypted data.
describe.each([
  ['HTTP', extent(2000, 10_000), () => ({})],
  ['HTTPS', 100, () => tls.settings],
])('many requests on one connection over %s', (_, count, settings) => {
  test('are all answered, in their order', async () => {
    const app = await startTestApp({ ...settings(), MAX_IN_FLIGHT_PER_CONNECTION: '10' });
    const connection = await openConnection(app.url);
    const key = uniqueKey();
    const kinds = [
      (headers: Record<string, string>) => requestText('POST', ratePath(key), headers),
      (headers: Record<string, string>) => requestText('GET', '/healthz', headers),
      (headers: Record<string, string>) =>
        requestText('POST', `${ratePath(key)}?canWait=true&maxRequests=1000000`, headers),
      (headers: Record<string, string>) =>
        `${requestText('POST', ratePath(key), { ...headers, 'Content-Length': '4' })}body`,
      (headers: Record<string, string>) => requestText('GET', '/%zz', { ...headers, Expect: 'x' }),
    ];
    let next = 0;
    connection.write(numbered(count, (headers) => kinds[next++ % kinds.length]!(headers)));
    await untilAnswered(connection, count);
    connection.disconnect();
    await app.stop(0);

    expect(answeredIds(connection.received)).toEqual(inOrder(count));
  });
});

test('one connection with 30,000 checks does not keep another from being served', async () => {
  const { limiter, asked } = watchedLimiter();
  const service = await startService({ limiter });
  const other = await openConnection(service.url);
  const many = await openConnection(service.url);
  many.write(requestText('POST', ratePath(uniqueKey())).repeat(30_000));
  await until(() => asked.length > 0);
  const between: number[] = [];
  for (let round = 1; round <= 10; round += 1) {
    const before = asked.length;
    other.write(requestText('GET', '/healthz'));
    await other.receives(new RegExp(`^(?:[^]*?OK){${2 * round}}$`));
    between.push(asked.length - before);
  }
  many.disconnect();
  other.disconnect();

  // The client is read in the same ticks, and may need some of them.
  expect(Math.max(...between)).toBeLessThanOrEqual(10 * BOUND);
});

function holdUp(millis: number): void {
  for (const end = performance.now() + millis; performance.now() < end;);
}

describe('requests beyond the bound of a connection', () => {
  test('are not begun before earlier ones are answered', async () => {
    const { limiter, asked, unblock } = blockedLimiter();
    const service = await startService({ limiter, maxInFlight: 3 });
    const connection = await openConnection(service.url);
    connection.write(requestText('POST', ratePath(uniqueKey())).repeat(10));
    await until(() => service.deferred === 7);
    expect(asked).toHaveLength(3);
    unblock();
    await connection.receives(/^(?:[^]*?HTTP\/1\.1 ){10}/);
    expect(asked).toHaveLength(10);

    // The connection counts its requests correctly over several reads.
    connection.write(requestText('POST', ratePath(uniqueKey())).repeat(10));
    await connection.receives(/^(?:[^]*?HTTP\/1\.1 ){20}/);
    expect(service.deferred).toBe(14);
    connection.disconnect();
  });

  test('get their 100 Continue in their turn', async () => {
    const { limiter, unblock } = blockedLimiter();
    const service = await startService({ limiter, maxInFlight: 1 });
    const connection = await openConnection(service.url);
    const headers = { 'Content-Length': '4', Expect: '100-continue' };
    connection.write(
      requestText('POST', ratePath(uniqueKey())) +
        requestText('POST', ratePath(uniqueKey()), headers),
    );
    await until(() => service.deferred === 1);
    expect(connection.received).toBe('');
    unblock();
    await connection.receives(/request_id[^]*HTTP\/1\.1 100 Continue\r\n\r\n/);
    connection.write(`body${requestText('GET', '/healthz')}`);

    await connection.receives(/request_id[^]*request_id[^]*OK$/);
    connection.disconnect();
  });

  test('have no time limit while they are deferred or unread', async () => {
    const { limiter, unblock } = blockedLimiter();
    const service = await startService({ limiter, maxInFlight: 1, timeouts: SHORT });
    const connection = await openConnection(service.url);
    const count = 2 * DEFERRED_WHILE_READ;
    // One read ends in the middle of a request, and its rest stays unread.
    connection.write(
      numbered(count, (headers) =>
        requestText('POST', ratePath(uniqueKey()), { ...headers, 'X-Long': 'x'.repeat(100) }),
      ),
    );
    await until(() => service.deferred >= DEFERRED_WHILE_READ);
    // When this is cut, any earlier request with a time limit would also have been cut.
    const sentinel = await openConnection(service.url);
    sentinel.write('POST');
    await sentinel.closed;
    expect(service.deferred).toBeLessThan(count - 1);
    unblock();
    await untilAnswered(connection, count);
    connection.disconnect();

    expect(answeredIds(connection.received)).toEqual(inOrder(count));
    expect(service.drops).toEqual([]);
  });

  test('have no time limit before the first read after a pause', async () => {
    const { limiter, asked, unblock } = blockedLimiter();
    const service = await startService({ limiter, maxInFlight: 1, timeouts: SHORT });
    const connection = await openConnection(service.url);
    const count = 2 * DEFERRED_WHILE_READ;
    connection.write(requestText('POST', ratePath(uniqueKey())).repeat(count));
    await until(() => service.deferred >= DEFERRED_WHILE_READ);
    const { deferred } = service;
    const check = limiter.check.bind(limiter);
    limiter.check = (...args) => {
      // The rest of a request becomes late while nothing is read.
      if (asked.length === deferred)
        process.nextTick(() => {
          holdUp(1.2 * SHORT.headMillis);
        });
      return check(...args);
    };
    unblock();
    await untilAnswered(connection, count);
    connection.disconnect();
  });

  test('are deferred up to a common bound for all connections', async () => {
    const { limiter, asked, unblock } = blockedLimiter();
    const service = await startService({ limiter, maxInFlight: 1 });
    const text = requestText('POST', ratePath(uniqueKey())).repeat(DEFERRED_WHILE_READ);
    const full: RawConnection[] = [];
    while (service.deferred + DEFERRED_WHILE_READ <= DEFERRED_IN_ALL) {
      const connection = await openConnection(service.url);
      connection.write(text);
      full.push(connection);
      await until(() => service.deferred === full.length * (DEFERRED_WHILE_READ - 1));
    }
    const beyond = await openConnection(service.url);
    beyond.write(text);
    await beyond.closed;
    expect(service.deferred).toBe(DEFERRED_IN_ALL);
    expect(service.drops).toEqual(['too_many_deferred']);
    expect(asked).toHaveLength(full.length + 1);

    unblock();
    for (const connection of full) {
      await untilAnswered(connection, DEFERRED_WHILE_READ);
      connection.disconnect();
    }
  });

  test('are dropped if their client reads none of its answers', async () => {
    // A busy machine may take more than a second between the two reads of a request, which would get a 408.
    const timeouts = { ...SHORT, headMillis: 5000, requestMillis: 5000 };
    const service = await startService({ timeouts });
    const socket = connect(Number(new URL(service.url).port), '127.0.0.1');
    await once(socket, 'connect');
    // The service may cut the connection with a reset.
    socket.on('error', () => undefined).pause();
    socket.write(requestText('POST', ratePath(uniqueKey())).repeat(100_000));
    await until(() => service.drops.length > 0);
    socket.destroy();

    expect(service.drops).toEqual(['slow_reader']);
  });
});

describe('requests on a connection without an accepted one', () => {
  const MAX_REJECTIONS = 10;
  const CALLER = { name: 'one', token: 'token-of-the-one-caller', scopes: ['check'] };
  const TOKENS = [CALLER, OPERATOR];
  const start = useApps();

  const check = (headers: Record<string, string> = {}): string =>
    requestText('POST', ratePath('key'), headers);

  describe.each([
    ['HTTP', () => ({})],
    ['HTTPS', () => tls.settings],
  ])('over %s', (_scheme, settings) => {
    test.each<[what: string, text: string, tokens: object[] | undefined]>([
      ['lack their token', check(), TOKENS],
      ['have a wrong token', check({ Authorization: 'Bearer wrong-wrong-wrong' }), TOKENS],
      ['are no good', requestText('POST', `${ratePath('key')}?hits=none`), undefined],
    ])('are dropped after ten that %s, and it ends with the next answer', async (...args) => {
      const [, text, tokens] = args;
      const app = await start(settings(), { tokens });
      const connection = await openConnection(app.url);
      connection.write(text.repeat(BOUND));
      await connection.closed;

      expect(connection.received.match(/HTTP\/1\.1 4/g)).toHaveLength(MAX_REJECTIONS + 1);
      expect(connection.received.match(/^Connection: close/gm)).toHaveLength(1);
      const dropped = { reason: 'too_many_rejected' };
      const metrics = await scrape(app.url, tokens && bearer(OPERATOR));
      expect(metrics.value('ratelimit_dropped_connections_total', dropped)).toBe(1);
    });
  });

  test('are all answered if the first has its token', async () => {
    const app = await start({ MAX_REQUESTS: '1000' }, { tokens: TOKENS });
    const connection = await openConnection(app.url);
    connection.write(check(bearer(CALLER)) + check().repeat(BOUND));
    await untilAnswered(connection, BOUND + 1);
    connection.disconnect();

    expect(connection.received).not.toContain('Connection: close');
  });

  test('are taken in many ticks, between which a check with a token is answered', async () => {
    const app = await start({ LOG_4XX: 'true', MAX_REQUESTS: '1000' }, { tokens: TOKENS });
    const caller = await openConnection(app.url);
    caller.write(check(bearer(CALLER)));
    await untilAnswered(caller, 1);
    const attackers = await Promise.all(Array.from({ length: 60 }, () => openConnection(app.url)));
    const rejected = (): number =>
      app.log.filter(({ errorCode }) => errorCode === 'TOKEN_REQUIRED').length;
    const ofTicks: number[] = [];
    let [before, isOver] = [0, false];
    const sample = (): void => {
      const now = rejected();
      ofTicks.push(now - before);
      before = now;
      if (!isOver) setImmediate(sample);
    };
    setImmediate(sample);
    for (const attacker of attackers) attacker.write(check().repeat(BOUND));
    caller.write(check(bearer(CALLER)));
    await untilAnswered(caller, 2);
    await Promise.all(attackers.map(({ closed }) => closed));
    isOver = true;
    caller.disconnect();

    // A tick stops the reading at 100 requests, and those of one more read come on top.
    expect(Math.max(...ofTicks)).toBeLessThanOrEqual(BOUND + 2 * MAX_REJECTIONS);
    expect(before).toBe((MAX_REJECTIONS + 1) * attackers.length);
  });
});
