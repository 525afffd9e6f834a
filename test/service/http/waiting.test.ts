import { bothLimiters } from '../../support/both-limiters.js';
import { approvedId } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useApps();

describe.each(bothLimiters(redis))('waiting (%s limiter)', (_name, settings) => {
  let url: string;
  const key = useHttpKey(() => ({ url }));

  test('ends when the next window begins, for one check in each', async () => {
    ({ url } = await start({ ...settings(), WINDOW_MILLIS: '200', MAX_REQUESTS: '1' }));
    // At least four of these have to wait for a window of their own.
    const answers = await Promise.all(Array.from({ length: 5 }, () => key.check('?canWait=true')));

    expect(new Set(answers.map(approvedId)).size).toBe(5);
  });

  test('is answered like a check that does not wait', async () => {
    ({ url } = await start({ ...settings(), WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }));
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
