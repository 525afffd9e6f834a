import { type TestApp, startTestApp } from '../../support/app.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { ratePath, send } from '../../support/http-client.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const FILLER_KEYS = 2000;
const FILL = `for i = 1, ${FILLER_KEYS} do redis.call('SET', 'filler' .. i, string.rep('-', 1024)) end`;
/** With these, loading would take a minute. */
const SLOW_LOAD = [
  'rdbcompression no',
  'key-load-delay 30000',
  'loading-process-events-interval-bytes 1024',
];
/** By both connections. It would take another minute with the longest pauses that Redis can ask for. */
const ASKED_AGAIN = 12;

describeWithRedisProgram('a service whose Redis loads its data', () => {
  let server: RedisProcess;
  let app: TestApp;
  beforeAll(async () => {
    server = await startRedisProcess({ configure: () => SLOW_LOAD });
    await server.command('EVAL', FILL, 0);
    await server.command('SAVE');
    app = await startTestApp({ REDIS_URL: server.url, STORE_TIMEOUT_MILLIS: '1500' });
  });
  afterAll(async () => {
    await app.stop(0);
    await server.stop();
  });

  const check = async (): Promise<number> =>
    (await send(app.url, 'POST', ratePath(uniqueKey()))).status;

  /** How often connections have sent INFO; undefined if the server does not load. */
  async function askedWhileLoading(): Promise<number | undefined> {
    const info = String(await server.command('INFO', 'everything'));
    if (!info.includes('loading:1')) return undefined;
    return Number(/cmdstat_info:calls=(\d+)/.exec(info)?.[1] ?? 0);
  }

  test('asks again and again whether Redis is ready, however long Redis expects to load', async () => {
    expect(await check()).toBe(200);
    await server.kill();
    const loaded = server.restart({ withData: true });
    let ours = 0;
    await until(async () => {
      const asked = await askedWhileLoading().catch(() => undefined);
      if (asked === undefined) return false;
      ours += 1;
      return asked - ours >= ASKED_AGAIN;
    });
    expect(await askedWhileLoading()).toBeGreaterThan(ASKED_AGAIN);
    expect(await check()).toBe(503);
    await server.command('CONFIG', 'SET', 'key-load-delay', 0);
    await loaded;
    await until(async () => (await check()) === 200);
  });
});
