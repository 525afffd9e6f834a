import { startTestApp, type TestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { type DebugState, untilWaiting } from '../../support/debug-state.js';
import { type FakeRedis, startFakeRedis } from '../../support/fake-redis.js';
import { approve, begin, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useApps();

async function instances(app: TestApp): Promise<Record<string, DebugState>> {
  const answer = await send(app.url, 'GET', '/debug');
  return (answer.json() as { Instances: Record<string, DebugState> }).Instances;
}

describe('debug', () => {
  let app: TestApp;
  beforeEach(async () => {
    app = await startTestApp({
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

  test('lists more keys than one read of a socket takes, each once', async () => {
    const keys = Array.from({ length: 600 }, () => uniqueKey().padEnd(512, 'x'));
    await checkMany(
      app.url,
      keys.map((key) => ({ key })),
    );
    const { text } = await send(app.url, 'GET', '/debug');

    expect(Object.keys(await instances(app)).sort()).toEqual([...keys].sort());
    // JSON.parse would hide a key that is listed twice.
    expect(text.match(/"Key":/g)).toHaveLength(keys.length);
  });
});

describe('/debug on a store whose replies are wrong', () => {
  let fake: FakeRedis;
  let app: TestApp;
  afterEach(async () => {
    await app.stop(0);
    await fake.close();
  });

  /** What `lua/inspect.lua` replies for one key. */
  const COUNTS = `*1\r\n${bulk(
    JSON.stringify({
      limits: '1000:5:6',
      counted: [{ used: 1, millisToWindowEnd: 1 }],
      ...{ denied: 1, waiting: 6, held: 7, pausedMillis: 8 },
    }),
  )}`;

  /** A service on a server that gives these replies to `SCAN` and to each script. */
  async function startOn(
    scan: () => string,
    script = COUNTS,
    settings: Readonly<Record<string, string>> = {},
  ) {
    fake = await startFakeRedis((command) => {
      if (command === 'SCAN') return scan();
      return command === 'FCALL' ? script : undefined;
    });
    app = await startTestApp({ REDIS_URL: fake.url, LOG_LEVEL: 'silent', ...settings });
  }

  function bulk(text: string): string {
    return `$${text.length}\r\n${text}\r\n`;
  }

  function page(cursor: string, ...names: string[]): string {
    return `*2\r\n${bulk(cursor)}*${names.length}\r\n${names.map(bulk).join('')}`;
  }

  test('a good reply is listed', async () => {
    await startOn(() => page('0', 'sluice:{a}'));

    expect((await send(app.url, 'GET', '/debug')).json()).toMatchObject({
      Instances: { a: { Key: 'a', NumWaiting: 6, NumHeld: 7, PausedMillis: 8 } },
    });
  });

  test.each([
    ['an integer', ':7\r\n'],
    ['a text', bulk('garbage')],
    ['nothing', '$-1\r\n'],
    ['an empty list', '*0\r\n'],
    ['a list of integers', '*2\r\n:0\r\n:0\r\n'],
    ['a cursor that is not a number', page('next')],
    ['a negative cursor', page('-1')],
    ['names that are lists', '*2\r\n$1\r\n0\r\n*1\r\n*0\r\n'],
  ])('a listing gets a 503 if SCAN is answered with %s', async (_what, reply) => {
    await startOn(() => reply);

    expect((await send(app.url, 'GET', '/debug')).status).toBe(503);
  });

  test.each([
    ['nothing', '$-1\r\n'],
    ['a text', bulk('garbage')],
    ['a text that is no JSON', `*1\r\n${bulk('garbage')}`],
    ['numbers', `*1\r\n*7\r\n${':1\r\n'.repeat(7)}`],
    ['too few numbers', `*1\r\n${bulk('{"limits":"1000:5:6","counted":[],"denied":1}')}`],
  ])('a listing gets a 503 if the states are answered with %s', async (_what, script) => {
    await startOn(() => page('0', 'sluice:{a}'), script);

    expect((await send(app.url, 'GET', '/debug')).status).toBe(503);
  });

  describe.each([
    ['the same cursor', () => '7'],
    ['the same cursors in turn', counter((i) => String(100 + (i % 37)))],
  ])('SCANs that are all answered with %s', (_what, nextCursor) => {
    test('end the connection of the listing', async () => {
      const cursorOf = nextCursor;
      await startOn(() => page(cursorOf()));
      const { answer } = begin(app.url, 'GET', '/debug');

      await expect(answer).rejects.toThrow();
    });
  });

  test('endless SCANs stop when the client has disconnected', async () => {
    const cursorOf = counter((i) => String(i + 1));
    // On a busy machine, one of the many calls may take longer than the default.
    await startOn(() => page(cursorOf()), COUNTS, { STORE_TIMEOUT_MILLIS: '5000' });
    const leaving = begin(app.url, 'GET', '/debug');
    const scans = (): number => fake.commands.filter((command) => command === 'SCAN').length;
    await until(() => scans() > 10);
    leaving.disconnect();

    await until(async () => {
      const before = scans();
      for (let i = 0; i < 20; i += 1) await send(app.url, 'GET', '/healthz');
      return scans() === before;
    });
  });

  function counter(make: (i: number) => string): () => string {
    let i = -1;
    return () => make((i += 1));
  }
});

test('a foreign name in Redis is left out of the list, and logged', async () => {
  const prefix = `${uniqueKey()}:`;
  const app = await start({
    ...PATIENT_STORE,
    REDIS_URL: redis.url,
    KEY_PREFIX: prefix,
    WINDOW_MILLIS: '3600000',
  });
  const ours = Array.from({ length: 150 }, uniqueKey);
  await Promise.all(ours.map((key) => approve(app.url, key)));
  const foreign = uniqueKey();
  await redis.client.set(`${prefix}{${foreign}}`, 'not a hash', 'EX', 3600);

  const answer = await send(app.url, 'GET', '/debug');

  expect(answer.status).toBe(200);
  const { Instances } = answer.json() as { Instances: Record<string, unknown> };
  expect(Object.keys(Instances).sort()).toEqual(ours.sort());
  await app.logged((line) => line.level === 'warn' && line.key === foreign);
});
