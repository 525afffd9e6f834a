import { bothLimiters } from '../../support/both-limiters.js';
import { useHttpKey } from '../../support/http-key.js';
import { useApp } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

describe.each(bothLimiters(redis))('a check that waits (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }));
  const key = useHttpKey(() => app);

  test('is answered like a check that does not wait', async () => {
    const holder = await key.approve('?maxRequestsInQueue=1');
    const { answer } = await key.wait();
    const denied = await key.check('?canWait=true');
    await key.release(holder);

    expect(denied.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    for (const { headers } of [denied, await answer]) {
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'cache-control': 'no-store',
      });
    }
  });
});
