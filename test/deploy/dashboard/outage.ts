import { PATIENT_STORE } from '../../support/both-limiters.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { checkTimes } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApps } from '../../support/use-apps.js';
import type { RedisForTests } from '../../support/use-redis.js';
import { listedKeys, untilListed, untilText } from './seen.js';
import type { Open } from './use-browser.js';

export function describeOutage(open: Open, redis: RedisForTests): void {
  describe('the dashboard in an outage of Redis', () => {
    const start = useApps();
    let proxy: FaultProxy;
    beforeEach(async () => {
      proxy = await startFaultProxy(Number(new URL(redis.url).port));
    });
    afterEach(() => proxy.stop());

    test('says what is not known, and as of when the figures are', async () => {
      const settings = {
        KEY_PREFIX: `${uniqueKey()}:`,
        WINDOW_MILLIS: '3600000',
        MAX_REQUESTS: '4',
      };
      const other = await start({ ...PATIENT_STORE, ...settings, REDIS_URL: redis.url });
      const url = Object.assign(new URL(redis.url), { port: String(proxy.port) }).href;
      const asked = await start({ ...settings, STORE_TIMEOUT_MILLIS: '3000', REDIS_URL: url });
      // Denied: rates would change the order, since those of the other replica are not known in the outage.
      await checkTimes(other.url, 'full', 5);
      await checkTimes(asked.url, 'half', 2);
      const { page, complaints } = await open(`${asked.url}/ui`);
      await untilListed(page, ['full', 'half']);
      await untilText(page, '#replica-count', /^2 replicas$/);
      await untilText(page, '#survey', /^2 keys/);

      proxy.stop();
      await untilText(page, '#outage', /Keys and replicas are as of [\d:]+ \(.+\)\. Not known: /);
      await untilText(page, '#store-state', /^down$/);
      await untilText(page, '#outage', 'which of 2 replicas last seen still live');
      await untilText(page, '#replica-count', '2 replicas last seen');
      await untilText(page, '#survey', '2 keys');
      expect(await listedKeys(page)).toEqual(['full', 'half']);
      expect(await page.locator('#keys .is-old').count()).toBe(2);

      await proxy.accept();
      await page.locator('#outage').waitFor({ state: 'hidden' });
      await untilText(page, '#replica-count', /^2 replicas$/);
      await untilText(page, '#store-state', /^up$/);
      expect(complaints).toEqual([]);
    });
  });
}
