import { bothLimiters } from '../../support/both-limiters.js';
import { bodyOf } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { scrape } from '../../support/prometheus-text.js';
import { until } from '../../support/until.js';
import { type OwnApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const TOO_MANY = 'too many waiters on this replica';

const redis = useRedis();
const start = useApps();

describe.each(bothLimiters(redis))('a replica with MAX_WAITERS (%s limiter)', (_name, settings) => {
  let app: OwnApp;
  const key = useHttpKey(() => app);
  const other = useHttpKey(() => app);

  async function startWith(MAX_WAITERS: string): Promise<void> {
    app = await start({ ...settings(), WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1', MAX_WAITERS });
    for (const each of [key, other]) await each.approve();
  }

  const failed = async (): Promise<number> =>
    (await scrape(app.url)).value('ratelimit_failed_checks_total', { reason: 'too_many_waiters' });

  test('fails a further waiter of any key, and holds another when one has disconnected', async () => {
    await startWith('2');
    const [first, second] = [await key.wait(), await other.wait()];
    const before = await key.state();
    expect(bodyOf(await key.check('?canWait=true'))).toEqual([
      503,
      { error: TOO_MANY, key: key.name },
    ]);
    expect([await failed(), await key.state()]).toEqual([1, before]);

    second.disconnect();
    await until(async () => (await scrape(app.url)).value('ratelimit_waiting') === 1);
    await key.wait();
    expect((await other.check('?canWait=true')).status).toBe(503);
    expect((await key.check('?maxRequests=2')).status).toBe(429);
    expect((await first.answer).status).toBe(200);
  });

  test('holds no more waiters if many come at once', async () => {
    await startWith('5');
    const answers = Array.from({ length: 20 }, () => key.check('?canWait=true'));
    await until(async () => (await failed()) === 15);
    await until(async () => (await key.state()).NumWaiting === 5);
    await app.stop(0);
    const bodies = (await Promise.all(answers)).map(({ json }) => json() as { error: string });

    expect(bodies.filter(({ error }) => error === 'shutting down')).toHaveLength(5);
    expect(bodies.filter(({ error }) => error === TOO_MANY)).toHaveLength(15);
  });
});
