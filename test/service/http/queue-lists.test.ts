import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';
import { useWaiters } from '../../support/use-waiters.js';

const HOUR = { window_millis: 3_600_000, max_requests_per_window: 1 };
const MILLIS = expect.any(Number) as number;

const redis = useRedis();

describe.each(bothLimiters(redis))('the queue in /debug/{key} (%s limiter)', (_name, settings) => {
  const [lanes, groups, plain] = [uniqueKey(), uniqueKey(), uniqueKey()];
  const app = useApp(settings, {
    rules: [
      {
        key_pattern: lanes,
        ...HOUR,
        queue: { lanes: [{ name: 'interactive' }, { name: 'batch' }] },
        limits: [{ ...HOUR, name: 'share', lanes: ['batch'] }],
      },
      { key_pattern: groups, ...HOUR, queue: { fair: true } },
      { key_pattern: plain, ...HOUR },
    ],
  });
  const wait = useWaiters(app);

  test('has the lanes with waiters, the longest first, and the lanes of a limit', async () => {
    await wait(lanes, 'lane=interactive', 'lane=batch', 'hits=1');

    expect(await debugState(app.url, lanes)).toMatchObject({
      NumWaiting: 3,
      Queue: {
        NumLists: 2,
        Lists: [
          { Lane: 'batch', NumWaiting: 2, OldestMillis: MILLIS },
          { Lane: 'interactive', NumWaiting: 1, OldestMillis: MILLIS },
        ],
      },
      Limits: [{ Name: 'share', Lanes: ['batch'] }],
    });
    expect((await send(app.url, 'GET', '/debug')).text).not.toContain('"Queue"');
  });

  test('has the twenty longest groups, and how many there are', async () => {
    const others = Array.from({ length: 20 }, (_, i) => `group=tenant-${i}`);
    await wait(groups, ...others, 'hits=1', 'group=g%C3%B6ld%201', 'group=g%C3%B6ld%201');

    const { NumLists, Lists = [] } = (await debugState(app.url, groups)).Queue ?? {};
    expect([NumLists, Lists.length]).toEqual([22, 20]);
    expect(Lists.slice(0, 2)).toEqual([
      { Group: 'göld 1', NumWaiting: 2, OldestMillis: MILLIS },
      { Group: 'tenant-0', NumWaiting: 1, OldestMillis: MILLIS },
    ]);
  });

  test('is left out if no request waits in a lane or a group', async () => {
    await wait(plain, 'hits=1');

    expect(await debugState(app.url, plain)).not.toHaveProperty('Queue');
  });
});
