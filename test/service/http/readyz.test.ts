import { type TestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { untilWaiting } from '../../support/debug-state.js';
import { type Answer, approve, begin, ratePath, send } from '../../support/http-client.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { holdEventLoop } from '../../support/hold-event-loop.js';
import { useApps } from '../../support/use-apps.js';

const start = useApps();

const redis = useRedis();

function readyz(app: TestApp): Promise<Answer> {
  return send(app.url, 'GET', '/readyz');
}

describe.each(bothLimiters(redis))('GET /readyz (%s limiter)', (_name, settings) => {
  test('is OK in plain text', async () => {
    const app = await start(settings());
    const { status, headers, text } = await readyz(app);

    expect([status, text]).toEqual([200, 'OK']);
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(headers['cache-control']).toBe('no-store');
  });

  test('tells a client with an open connection that the replica drains', async () => {
    const app = await start({
      ...settings(),
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
    });
    const key = uniqueKey();
    await approve(app.url, key);
    // Keeps the replica from stopping, which would close every connection.
    const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    await untilWaiting(app.url, key, 1);
    const connection = await openConnection(app.url);
    const text = requestText('GET', '/readyz');
    connection.write(text.slice(0, -2));
    // Answered on another connection, so the first has been accepted before.
    await send(app.url, 'GET', '/healthz');
    const stopped = app.stop(3_600_000);
    connection.write(text.slice(-2));
    await connection.closed;
    waiting.disconnect();
    await stopped;

    expect(connection.received).toMatch(/^HTTP\/1\.1 503 [^]*\r\n\r\ndraining$/);
  });
});

test('GET /readyz is 503 while the event loop is delayed, and each change is logged once', async () => {
  const app = await start({ MAX_EVENT_LOOP_DELAY_MILLIS: '200' });
  // Each tick takes longer than the limit.
  const busy = setInterval(holdEventLoop, 0, 300);
  const overloaded = await until(async () => {
    const answer = await readyz(app);
    return answer.status !== 200 && answer;
  });
  clearInterval(busy);
  await until(async () => (await readyz(app)).status === 200);

  const reason: unknown = expect.stringMatching(/^event loop delayed by \d+ ms$/);
  expect([overloaded.status, overloaded.text]).toEqual([503, reason]);
  const lines = app.log.filter(({ msg }) => msg === 'not ready' || msg === 'ready again');
  expect(lines).toMatchObject([{ msg: 'not ready', reasons: [reason] }, { msg: 'ready again' }]);
});

test('GET /readyz is OK while Redis is down with READY_DURING_OUTAGE=true', async () => {
  // Port 1 is reserved, so no server listens there.
  const away = { REDIS_URL: 'redis://127.0.0.1:1', STORE_TIMEOUT_MILLIS: '200' };
  const app = await start({ ...away, READY_DURING_OUTAGE: 'true' });
  const { status, text } = await readyz(app);

  expect([status, text]).toEqual([200, 'OK']);
});
