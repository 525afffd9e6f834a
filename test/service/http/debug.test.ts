import { type TestApp, startTestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { type DebugState, debugState, untilWaiting } from '../../support/debug-state.js';
import { approve, begin, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

async function instances(app: TestApp): Promise<Record<string, DebugState>> {
  const answer = await send(app.url, 'GET', '/debug');
  return (answer.json() as { Instances: Record<string, DebugState> }).Instances;
}

describe.each(bothLimiters(redis))('debug (%s limiter)', (_name, settings) => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startTestApp({
      ...settings(),
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '2',
      MAX_REQUESTS_IN_QUEUE: '9',
    });
  });
  afterEach(() => app.stop(0));

  test('of no keys is an empty map', async () => {
    const answer = await send(app.url, 'GET', '/debug');

    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.json()).toStrictEqual({ Instances: {} });
  });

  test('maps each key to its state, with exactly the fields of the contract', async () => {
    const [quiet, busy] = [uniqueKey(), uniqueKey()];
    await approve(app.url, quiet, '?maxRequests=5&maxRequestsInQueue=0');
    await approve(app.url, busy);
    await approve(app.url, busy);
    await send(app.url, 'POST', `/rate/${busy}`);
    const waiting = begin(app.url, 'POST', `/rate/${busy}?canWait=true`);
    await untilWaiting(app.url, busy, 1);

    expect((await send(app.url, 'GET', '/debug')).json()).toStrictEqual({
      Instances: {
        [quiet]: {
          Key: quiet,
          Config: { WindowMillis: 3_600_000, MaxRequestsPerWindow: 5, MaxRequestsInQueue: 0 },
          NumApprovedThisWindow: 1,
          NumDeniedThisWindow: 0,
          NumWaiting: 0,
          Found: true,
        },
        [busy]: {
          Key: busy,
          Config: { WindowMillis: 3_600_000, MaxRequestsPerWindow: 2, MaxRequestsInQueue: 9 },
          NumApprovedThisWindow: 2,
          NumDeniedThisWindow: 1,
          NumWaiting: 1,
          Found: true,
        },
      },
    });
    waiting.disconnect();
  });

  test('of one key is its entry in the map', async () => {
    const key = uniqueKey();
    await approve(app.url, key);
    const answer = await send(app.url, 'GET', `/debug/${key}`);

    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.json()).toStrictEqual((await instances(app))[key]);
  });

  test('of a key too long to exist is not found', async () => {
    const key = 'x'.repeat(513);
    const answer = await send(app.url, 'GET', `/debug/${key}`);

    expect(answer.status).toBe(200);
    expect(answer.json()).toStrictEqual({ Key: key, Found: false });
  });

  test('of a key that is not percent-encoded UTF-8 is not found', async () => {
    const answer = await send(app.url, 'GET', '/debug/%zz');

    expect(answer.status).toBe(200);
    expect(answer.json()).toStrictEqual({ Key: '%zz', Found: false });
  });

  test('creates no key and counts nothing', async () => {
    const [seen, unseen] = [uniqueKey(), uniqueKey()];
    await approve(app.url, seen);
    await send(app.url, 'GET', `/debug/${unseen}`);
    await send(app.url, 'GET', `/debug/${seen}`);

    expect(Object.keys(await instances(app))).toEqual([seen]);
    expect(await debugState(app.url, seen)).toMatchObject({
      NumApprovedThisWindow: 1,
      NumDeniedThisWindow: 0,
    });
  });

  test('lists more keys than one read of a socket takes, each once', async () => {
    const keys = Array.from({ length: 600 }, () => uniqueKey().padEnd(512, 'x'));
    // No more connections at once than the backlog of a server holds.
    for (const some of [keys.slice(0, 300), keys.slice(300)]) {
      await Promise.all(some.map((key) => approve(app.url, key)));
    }
    const { text } = await send(app.url, 'GET', '/debug');

    expect(Object.keys(await instances(app)).sort()).toEqual([...keys].sort());
    // JSON.parse would hide a key that is listed twice.
    expect(text.match(/"Key":/g)).toHaveLength(keys.length);
  });
});
