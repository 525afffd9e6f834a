import { WATCH_PATH } from '../../../src/grpc/health.js';
import type { Timeouts } from '../../../src/net/connection-bounds.js';
import { extent } from '../../support/extent.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { type Gateway, of, useGateways } from '../../support/grpc-gateway.js';
import { requestFrame, useRawCalls } from '../../support/grpc-raw.js';
import { useGrpcServices } from '../../support/grpc-service.js';
import {
  ERROR_CODE,
  FRAME,
  type FrameConnection,
  PREFACE,
  useFrameConnections,
} from '../../support/http2-frames.js';
import { smallLimiter } from '../../support/http-service.js';
import { ManualClock } from '../../support/manual-clock.js';
import { scrape } from '../../support/prometheus-text.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { blockedLimiter } from '../../support/watched-limiter.js';

const HOUR = 3_600_000;
/** Most streams of a port whose messages have not come. */
const MAX_COMING = 2000;
/** Most connections of a port that have not begun. */
const MAX_BEGINNING = 1000;
/** Most streams of one connection, by the settings. */
const IN_FLIGHT = 100;
const CALLER = { name: 'gateway', token: 'token-of-the-gateway', scopes: ['check'] };
const OPERATOR = { name: 'operator', token: 'token-of-the-operator', scopes: ['debug'] };
const MESSAGE = requestFrame({ descriptors: [of('key')] });
const LARGE = ['x-large', 'a'.repeat(3900)] as const;

const start = useGrpcApps();
const startService = useGrpcServices();
const gatewayOf = useGateways();
const rawCallsTo = useRawCalls();
const connect = useFrameConnections();

const timeouts = (limits: Partial<Timeouts>): { timeouts: Timeouts } => ({
  timeouts: { headMillis: HOUR, requestMillis: HOUR, idleMillis: HOUR, checkMillis: 20, ...limits },
});

async function begun(at: { grpcPort: number }, options?: object): Promise<FrameConnection> {
  const connection = await connect(at);
  connection.begin(options);
  // The first settle shows that the service's settings have come, the second that the service has read their answer.
  await connection.settle();
  await connection.settle();
  return connection;
}

const dropsOf = async ({ url }: GrpcApp, reason: string): Promise<number> =>
  (await scrape(url)).value('ratelimit_dropped_streams_total', { reason });

async function expectServed(gateway: Gateway): Promise<void> {
  expect((await gateway.askFor(uniqueKey())).overall_code).toBe('OK');
}

describe('a connection', () => {
  test.each<[what: string, begin: (connection: FrameConnection) => void]>([
    ['sends nothing', () => undefined],
    ['sends half a preface', (connection) => connection.write(PREFACE.subarray(0, 12))],
    [
      'does not acknowledge the settings',
      (connection) => connection.begin({ acknowledges: false }),
    ],
  ])('that %s is closed after the time limit of a head', async (_what, begin) => {
    const service = await startService(smallLimiter(), timeouts({ headMillis: 100 }));
    const connection = await connect(service);
    begin(connection);

    await connection.closed;
  });

  test('that has not begun is closed for a later one if a port has 1000 of them', async () => {
    const app = await start();
    const first = await connect(app);
    for (let open = 1; open < MAX_BEGINNING; open += 1) await connect(app);
    await expectServed(gatewayOf(app));

    await first.closed;
  });

  test('that has begun is not closed after the time limit of a head', async () => {
    // So long that a busy machine does not take the first for one that has not begun.
    const service = await startService(smallLimiter(), timeouts({ headMillis: 3000 }));
    const first = await begun(service);
    const second = await connect(service);
    await second.closed;
    await first.settle();

    expect(first.isClosed).toBe(false);
  });
});

test('a connection that answers no ping is closed, and one that answers stays', async () => {
  const { limiter, asked, unblock } = blockedLimiter();
  const service = await startService(limiter, { pings: { everyMillis: 100, answerMillis: 2000 } });
  const call = gatewayOf(service).askFor(uniqueKey());
  await until(() => asked.length === 1);
  const silent = await begun(service);
  await silent.closed;
  unblock();

  expect((await call).overall_code).toBe('OK');
});

describe('a client that resets its streams before they are answered', () => {
  /** Opens and resets streams on connection after connection, until told to stop. */
  async function attack(app: GrpcApp, goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      const connection = await connect(app);
      connection.begin();
      for (let i = 0; i < 1200; i += 1) connection.reset(connection.openStream());
      await connection.closed;
    }
  }

  test('loses its connection at once, also if it connects again, and calls on other connections are answered', async () => {
    const app = await start();
    const gateway = gatewayOf(app);
    await expectServed(gateway);
    const attackers = { goOn: true };
    const attacks = Array.from({ length: 4 }, () => attack(app, () => attackers.goOn));
    const drops = (): Promise<number> =>
      scrape(app.url).then((metrics) =>
        metrics.value('ratelimit_dropped_connections_total', { reason: 'too_many_resets' }),
      );
    // After the first few connections most are closed before they begin.
    await until(async () => {
      await expectServed(gateway);
      return (await drops()) > extent(20, 50);
    });
    attackers.goOn = false;
    await Promise.all(attacks);

    await expectServed(gateway);
  });
});

describe('streams on a connection without an accepted request', () => {
  const MAX_REJECTIONS = 10;
  const TOKENS = [CALLER, OPERATOR];

  /** Sends calls in one piece. @returns their streams */
  function sendAtOnce(connection: FrameConnection, count: number, options?: object): number[] {
    return Array.from({ length: count }, () => {
      const stream = connection.openStream(options);
      connection.send(stream, MESSAGE, { isLast: true });
      return stream;
    });
  }

  const isAnswered = (connection: FrameConnection, stream: number): boolean =>
    connection.framesOf(stream).some(({ type }) => type === FRAME.headers);

  test.each<[what: string, tokens: object[] | undefined, options: object]>([
    ['lack their token', TOKENS, {}],
    ['have a wrong token', TOKENS, { headers: [['authorization', 'Bearer wrong-wrong-wrong']] }],
    ['are for an unknown method', undefined, { path: '/no.Service/Method' }],
  ])('are refused after ten that %s, and it ends', async (_what, tokens, options) => {
    const app = await start({}, { tokens });
    const connection = await begun(app);
    const streams = sendAtOnce(connection, IN_FLIGHT, options);
    await connection.closed;

    const answered = streams.filter((stream) => isAnswered(connection, stream));
    // HTTP/2 sends the answers of streams in any order, and the last may come too late.
    expect(streams.slice(0, MAX_REJECTIONS)).toEqual(expect.arrayContaining(answered));
    expect(connection.received.at(-1)!.type).toBe(FRAME.goAway);
    const dropped = { reason: 'too_many_rejected' };
    const metrics = await scrape(app.url, bearer(OPERATOR));
    expect(metrics.value('ratelimit_dropped_connections_total', dropped)).toBe(1);
  });

  test('with bad messages are answered, and then it ends', async () => {
    const app = await start();
    const connection = await begun(app);
    const streams = Array.from({ length: IN_FLIGHT }, () => {
      const stream = connection.openStream();
      connection.send(stream, Buffer.from([0, 0, 0, 0, 1, 0xff]), { isLast: true });
      return stream;
    });
    await connection.closed;

    const answered = streams.filter((stream) => isAnswered(connection, stream));
    expect(answered.length).toBeGreaterThanOrEqual(MAX_REJECTIONS);
  });

  test('are all served if the first has its token, or a call still waits for its decision', async () => {
    const { limiter, asked, unblock } = blockedLimiter();
    const service = await startService(limiter);
    const connection = await begun(service);
    const [waiting] = sendAtOnce(connection, 1);
    await until(() => asked.length === 1);
    const bad = sendAtOnce(connection, 2 * MAX_REJECTIONS, { headers: [['grpc-timeout', 'x']] });
    await connection.settle();
    unblock();
    await until(() => isAnswered(connection, waiting!));
    expect(bad.every((stream) => isAnswered(connection, stream))).toBe(true);

    const app = await start({ MAX_REQUESTS: '1000' }, { tokens: TOKENS });
    const gateway = await begun(app);
    const headers = [['authorization', bearer(CALLER).Authorization]];
    const [first] = sendAtOnce(gateway, 1, { headers });
    const others = sendAtOnce(gateway, IN_FLIGHT - 2);
    const [last] = sendAtOnce(gateway, 1, { headers });
    await until(() => isAnswered(gateway, last!) && isAnswered(gateway, first!));

    expect(others.every((stream) => isAnswered(gateway, stream))).toBe(true);
    await gateway.settle();
    expect(gateway.isClosed).toBe(false);
  });

  test('are taken in many ticks, between which a call with a token is answered', async () => {
    const app = await start({ LOG_4XX: 'true', MAX_REQUESTS: '1000' }, { tokens: TOKENS });
    const gateway = rawCallsTo(app);
    const ask = () => gateway.ask({ descriptors: [of(uniqueKey())] }, { headers: bearer(CALLER) });
    await ask();
    const attackers: FrameConnection[] = [];
    while (attackers.length < 60) attackers.push(await begun(app));
    const rejected = (): number => app.log.filter(({ status }) => status === 401).length;
    const ofTicks: number[] = [];
    let [before, isOver] = [rejected(), false];
    const sample = (): void => {
      const now = rejected();
      ofTicks.push(now - before);
      before = now;
      if (!isOver) setImmediate(sample);
    };
    setImmediate(sample);
    for (const attacker of attackers) sendAtOnce(attacker, IN_FLIGHT);
    expect((await ask()).code).toBe('OK');
    await Promise.all(attackers.map(({ closed }) => closed));
    isOver = true;

    // A tick stops the reading at 100, and those of one more read come on top.
    expect(Math.max(...ofTicks)).toBeLessThanOrEqual(100 + 2 * MAX_REJECTIONS);
    expect(before).toBe(MAX_REJECTIONS * attackers.length);
  });
});

describe('a connection that has got a GOAWAY', () => {
  test.each<[what: string, breakProtocol: (connection: FrameConnection) => void]>([
    [
      'a header that it must not repeat',
      (connection) => void connection.openStream({ repeated: { header: LARGE, times: 2 } }),
    ],
    ['bytes that are no frame', (connection) => connection.write(Buffer.alloc(1000, 7))],
  ])('for %s ends within 10 s', async (_what, breakProtocol) => {
    const clock = new ManualClock(0);
    const service = await startService(smallLimiter(), { clock });
    const [connection, other] = [await begun(service), await begun(service)];
    breakProtocol(connection);
    await until(() => connection.received.some(({ type }) => type === FRAME.goAway));
    for (let second = 0; second < 10; second += 1) {
      await clock.advance(1000);
      await other.settle();
    }

    await connection.closed;
    expect(other.isClosed).toBe(false);
  });
});

test('a connection that is idle, or waits for an answer, gets one ping and stays', async () => {
  const clock = new ManualClock(0);
  const limiter = smallLimiter();
  limiter.check = () => new Promise(() => undefined);
  const service = await startService(limiter, { clock });
  const [idle, waits] = [await begun(service), await begun(service)];
  waits.send(waits.openStream(), MESSAGE, { isLast: true });
  for (let second = 0; second < 60; second += 1) {
    await clock.advance(1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all([idle.settle(), waits.settle()]);

  expect([idle.isClosed, waits.isClosed]).toEqual([false, false]);
});

describe('a call without a message', () => {
  test('is rejected at once without a token, and with a wrong one', async () => {
    const app = await start({}, { tokens: [CALLER] });
    const calls = rawCallsTo(app);
    const begin = (headers: object) => calls.send([], { headers: { ...headers }, staysOpen: true });
    let isGoodOver = false;
    begin(bearer(CALLER)).then(
      () => (isGoodOver = true),
      () => undefined,
    );

    expect(await begin({})).toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(await begin({ authorization: 'Bearer token-of-nobody' })).toMatchObject({
      code: 'UNAUTHENTICATED',
      details: 'unknown token',
    });
    expect(isGoodOver).toBe(false);
  });

  test('exceeds its deadline after the time limit of a request, even if bytes of it come', async () => {
    const service = await startService(smallLimiter(), timeouts({ requestMillis: 300 }));
    const connection = await begun(service);
    const silent = rawCallsTo(service).send([], { staysOpen: true });
    const slow = connection.openStream();
    const drip = setInterval(() => {
      connection.send(slow, Buffer.alloc(1));
    }, 20);
    connection.send(slow, MESSAGE.subarray(0, 5));
    const code = await connection.codeOf(slow);
    clearInterval(drip);

    expect(code).toBe(ERROR_CODE.none);
    expect(await silent).toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      details: 'request timed out',
    });
    // The connection goes on.
    const next = connection.openStream();
    connection.send(next, MESSAGE, { isLast: true });
    await until(() => connection.framesOf(next).some(({ type }) => type === FRAME.data));
  });

  test('is dropped for a later one if a port has 2000, and a call whose message comes is served', async () => {
    const app = await start();
    const connections: FrameConnection[] = [];
    const first = await begun(app);
    const firstStream = first.openStream();
    await first.settle();
    for (let open = 1; open < MAX_COMING; open += IN_FLIGHT) {
      const connection = await begun(app);
      const count = Math.min(IN_FLIGHT, MAX_COMING - open);
      for (let i = 0; i < count; i += 1) connection.openStream();
      connections.push(connection);
    }
    for (const connection of connections) await connection.settle();
    expect(first.framesOf(firstStream)).toEqual([]);
    await expectServed(gatewayOf(app));

    expect(await first.codeOf(firstStream)).toBe(ERROR_CODE.refusedStream);
    expect(await dropsOf(app, 'too_many')).toBe(1);
    expect(app.log).toContainEqual(
      expect.objectContaining({ msg: 'streams dropped', dropped: { too_many: 1 } }),
    );
  });
});

describe('headers', () => {
  test.each([
    ['has acknowledged that limit', { acknowledges: true }],
    ['has not', { acknowledges: false }],
  ])('of over 8 KiB are rejected if the client %s', async (_what, options) => {
    const app = await start();
    const connection = await begun(app, options);
    const stream = connection.openStream({ headers: [LARGE, LARGE, LARGE] });

    expect(await connection.codeOf(stream)).toBe(ERROR_CODE.enhanceYourCalm);
    await expectServed(gatewayOf(app));
  });

  test('can not be repeated from a table', async () => {
    const app = await start();
    const connection = await begun(app);
    connection.openStream({ repeated: { header: LARGE, times: 2 } });
    const goAway = await until(() => connection.received.find(({ type }) => type === FRAME.goAway));

    const COMPRESSION_ERROR = 9;
    expect(goAway.payload.readUInt32BE(4)).toBe(COMPRESSION_ERROR);
    await expectServed(gatewayOf(app));
  });
});

test('an answer that is not read within the time limit of a request ends its stream', async () => {
  const service = await startService(smallLimiter(), timeouts({ requestMillis: 300 }));
  const connection = await begun(service, { takesAnswers: false });
  const stream = connection.openStream();
  connection.send(stream, MESSAGE, { isLast: true });

  expect(await connection.codeOf(stream)).toBe(ERROR_CODE.cancel);
});

describe('streams that need no token', () => {
  const WATCH = { path: WATCH_PATH };
  const EMPTY = Buffer.alloc(5);

  test('are at most three on a connection, and other connections are served', async () => {
    const app = await start();
    const connection = await begun(app);
    const streams = Array.from({ length: 4 }, () => connection.openStream(WATCH));
    for (const stream of streams) connection.send(stream, EMPTY, { isLast: true });

    expect(await connection.codeOf(streams[3]!)).toBe(ERROR_CODE.refusedStream);
    const another = await begun(app);
    for (const stream of streams.slice(0, 3)) {
      await until(() => connection.framesOf(stream).some(({ type }) => type === FRAME.data));
    }
    const stream = another.openStream(WATCH);
    another.send(stream, EMPTY, { isLast: true });
    await until(() => another.framesOf(stream).some(({ type }) => type === FRAME.data));
    expect(await dropsOf(app, 'too_many')).toBe(1);
  });

  test('may watch for longer than a request may take', async () => {
    const service = await startService(smallLimiter(), timeouts({ requestMillis: 100 }));
    const connection = await begun(service);
    const watched = connection.openStream(WATCH);
    connection.send(watched, EMPTY, { isLast: true });
    await until(() => connection.framesOf(watched).some(({ type }) => type === FRAME.data));
    // This request times out later than the watch would.
    await connection.codeOf(connection.openStream());

    expect(connection.framesOf(watched).map(({ type }) => type)).not.toContain(FRAME.reset);
  });
});
