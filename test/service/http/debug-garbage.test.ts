import { type TestApp, startTestApp } from '../../support/app.js';
import { begin, send } from '../../support/http-client.js';
import { type FakeRedis, startFakeRedis } from '../../support/fake-redis.js';
import { until } from '../../support/until.js';

let fake: FakeRedis;
let app: TestApp;
afterEach(async () => {
  await app.stop(0);
  await fake.close();
});

/** What `lua/inspect.lua` replies for one key. */
const COUNTS = `*1\r\n*12\r\n${[
  ...[bulk('limits'), bulk('1000:5:6'), bulk('used'), bulk('1:1')],
  ...[bulk('denied'), ':1\r\n', bulk('waiting'), ':6\r\n'],
  ...[bulk('held'), ':7\r\n', bulk('pause_left'), ':8\r\n'],
].join('')}`;

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
  ['texts', `*1\r\n*10\r\n${bulk('a').repeat(10)}`],
  ['too few numbers', `*1\r\n*7\r\n${':1\r\n'.repeat(7)}`],
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
  }, 5000);
});

function counter(make: (i: number) => string): () => string {
  let i = -1;
  return () => make((i += 1));
}
