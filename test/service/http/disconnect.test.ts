import { startTestApp, type TestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { callText } from '../../support/bulk-client.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { approve, begin, ratePath } from '../../support/http-client.js';
import { smallLimiter, useHttpServices } from '../../support/http-service.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import type { LogLine } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { withholdDecisions } from '../../support/watched-limiter.js';

const redis = useRedis();
const startService = useHttpServices();

describe('a waiting client that disconnects', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startTestApp({
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
      LOG_2XX: 'true',
      LOG_4XX: 'true',
    });
  });
  afterEach(() => app.stop(0));

  /** Every log line of a request: none can follow once the app has stopped. */
  async function linesOf(correlationId: string): Promise<LogLine[]> {
    await app.stop(0);
    return app.log.filter((line) => line.correlationId === correlationId);
  }

  test.each(['POST', 'GET'])('is logged once, with status 499 (%s)', async (method) => {
    const key = `${uniqueKey()} {é}`;
    const correlationId = uniqueKey();
    await approve(app.url, key);
    const waiting = begin(app.url, method, `${ratePath(key)}?canWait=true`, {
      'X-Correlation-ID': correlationId,
    });
    await untilWaiting(app.url, key, 1);
    waiting.disconnect();
    await app.logged((line) => line.status === 499);

    expect(await linesOf(correlationId)).toEqual([
      expect.objectContaining({
        level: 'info',
        msg: expect.stringMatching(/./) as unknown,
        key,
        status: 499,
        correlationId,
      }),
    ]);
  });

  test('is noticed behind large answers, which keep the connection from being read', async () => {
    const [key, other] = [uniqueKey(), uniqueKey()];
    await approve(app.url, key);
    const connection = await openConnection(app.url);
    const large = requestText('GET', '/metrics').repeat(5);
    connection.write(
      requestText('GET', `/debug/${other}`) +
        large +
        requestText('POST', `/rate/${key}?canWait=true`),
    );
    await untilWaiting(app.url, key, 1);
    await connection.receives(/"Found":false(?:[^]*# HELP ratelimit_waiting ){5}/);
    connection.disconnect();

    await untilWaiting(app.url, key, 0);
    await app.logged((line) => line.status === 499 && line.key === key);
  });
});

describe.each(bothLimiters(redis))(
  'a client that ends its sending side after its request (%s limiter)',
  (_name, settings) => {
    test.each([
      ['check', (key: string) => requestText('POST', `/rate/${key}`)],
      ['wait', (key: string) => requestText('POST', `/rate/${key}?canWait=true`)],
      ['bulk request', (key: string) => callText('POST', [{ key }])],
    ])('receives each approval that counts: %s', async (_way, textOf) => {
      const app = await startTestApp({
        ...settings(),
        MAX_REQUESTS: '1000',
        WINDOW_MILLIS: '3600000',
      });
      const key = uniqueKey();
      let counted = 0;
      const ask = async () => {
        const connection = await openConnection(app.url);
        connection.write(textOf(key));
        connection.end();
        await connection.closed;
        return connection.received.includes('request_id');
      };
      for (let round = 0; round < 10; round += 1) {
        const asked = await Promise.all(Array.from({ length: 20 }, ask));
        const received = asked.filter(Boolean).length;
        counted += received;
        await until(async () => (await debugState(app.url, key)).NumApprovedThisWindow === counted);
      }
      await app.stop(0);
    });
  },
);

test('the approvals of a bulk request are given back if its client disconnects before the answer', async () => {
  const limiter = smallLimiter();
  const { tell, decided } = withholdDecisions(limiter);
  const service = await startService({ limiter });
  const keys = Array.from({ length: 1000 }, () => uniqueKey());
  const connection = await openConnection(service.url);
  connection.write(callText('POST', [...keys.map((key) => ({ key })), 5].slice(-1000)));
  await until(() => decided() === 999);
  const last = keys.at(-1)!;
  expect(await limiter.ask('inspect', { key: last })).toMatchObject({ limits: [{ used: 1 }] });
  connection.disconnect();
  await connection.closed;
  tell();
  await until(async () => (await limiter.ask('inspect', { key: last }))?.limits[0].used === 0);

  for (const key of keys.slice(1))
    expect(await limiter.ask('inspect', { key })).toMatchObject({ limits: [{ used: 0 }] });
});

test('releases are carried out even if their client disconnects', async () => {
  const limiter = smallLimiter();
  const ask = limiter.ask.bind(limiter);
  let asked = 0;
  let go!: () => void;
  const isTimeToGo = new Promise<void>((resolve) => (go = resolve));
  limiter.ask = async (...args) => {
    asked += 1;
    await isTimeToGo;
    return ask(...args);
  };
  const service = await startService({ limiter });
  const held: { key: string; request_id: string }[] = [];
  for (let i = 0; i < 1000; i += 1) {
    const key = uniqueKey();
    const decision = await limiter.check({ key, canWait: false });
    held.push({ key, request_id: (decision as { requestId: string }).requestId });
  }
  const connection = await openConnection(service.url);
  connection.write(callText('DELETE', held));
  await until(() => asked > 0);
  connection.disconnect();
  go();
  await until(() => asked === 1000);
  const last = held.at(-1)!;
  await until(async () => (await limiter.ask('inspect', { key: last.key }))?.limits[0].used === 0);

  for (const { key } of held)
    expect(await limiter.ask('inspect', { key })).toMatchObject({ limits: [{ used: 0 }] });
});
