import { bothLimiters } from '../../support/both-limiters.js';
import { bodyOf, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { type OwnApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useApps();

const HOUR = 3_600_000;

describe.each(bothLimiters(redis))('denied_takes_rest (%s limiter)', (_name, settings) => {
  let app: OwnApp;
  const key = useHttpKey(() => app);
  const startWith = async (rule: object = {}): Promise<void> => {
    const limits = { max_requests_per_window: 10, window_millis: HOUR, denied_takes_rest: true };
    app = await start(settings(), { rules: [{ key_pattern: key.name, ...limits, ...rule }] });
  };
  const statusOf = async (query = ''): Promise<number> => (await key.check(query)).status;

  test('a denied check takes what is left, and no more', async () => {
    await startWith();
    await key.approve('?hits=7');
    const denied = await key.check('?hits=5');

    expect([denied.status, denied.headers.ratelimit]).toEqual([
      429,
      expect.stringMatching(/r=0;/) as string,
    ]);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 10 });
    expect(await statusOf()).toBe(429);
  });

  test('so does one with more hits than the maximum', async () => {
    await startWith();
    expect(await statusOf('?hits=11')).toBe(400);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 10 });
  });

  test('so does one in shadow mode, which passes', async () => {
    await startWith({ shadow: true });
    expect(await statusOf('?hits=7')).toBe(200);
    expect(await statusOf('?hits=5')).toBe(200);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 10 });
  });

  test('a release gives nothing of it back', async () => {
    await startWith();
    const id = await key.approve('?hits=7');
    await key.check('?hits=5');
    expect((await key.release(id)).status).toBe(200);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 10 });
  });

  test('a peek and a check that has no place to wait take nothing', async () => {
    await startWith({ max_requests_in_queue: 0 });
    await key.approve('?hits=7');
    const path = `/rate/${key.name}`;
    expect((await send(app.url, 'GET', `${path}?peek=true&hits=5`)).status).toBe(429);
    expect(await statusOf('?hits=5&canWait=true')).toBe(429);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 7 });
  });

  test('only the limits that lack room, by hits and in fixed windows, lose what they have left', async () => {
    const limit = { max_hits_per_window: 8, window_millis: HOUR };
    await startWith({
      limits: [
        { name: 'short', ...limit },
        { name: 'long', ...limit, max_hits_per_window: 100 },
        { name: 'paced', ...limit, algorithm: 'token_bucket', burst: 8 },
      ],
    });
    await key.approve('?hits=4');
    expect(bodyOf(await key.check('?hits=5'))).toMatchObject([429, { limit: 'short' }]);
    expect(await key.state()).toMatchObject({
      NumApprovedThisWindow: 4,
      Limits: [
        { Name: 'short', NumApprovedThisWindow: 8 },
        { Name: 'long', NumApprovedThisWindow: 4 },
        { Name: 'paced', NumApprovedThisWindow: 4 },
      ],
    });
  });
});
