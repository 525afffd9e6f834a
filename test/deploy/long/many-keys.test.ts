import { bothLimiters } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';
import { listedKeys, untilListed, untilText } from '../dashboard/seen.js';
import { describeInBrowser, useBrowser } from '../dashboard/use-browser.js';

const KEYS = 10_000;
const PER_CALL = 1000;

const redis = useRedis();
const start = useApps();

describeInBrowser('the dashboard of ten thousand keys', () => {
  const open = useBrowser();

  test.each(bothLimiters(redis))('stays usable (%s limiter)', async (_name, settings) => {
    const app = await start({
      ...settings(),
      MAX_REQUESTS: '3',
      WINDOW_MILLIS: '3600000',
    });
    const checkAll = (keys: readonly string[]) =>
      checkMany(
        app.url,
        keys.map((key) => ({ key })),
      );
    for (let first = 0; first < KEYS; first += PER_CALL) {
      await checkAll(Array.from({ length: PER_CALL }, (_, i) => `tenant-${first + i}`));
    }
    await checkAll(['tenant-7777', 'tenant-7777', 'tenant-42']);
    const { page, complaints } = await open(`${app.url}/ui`);

    await untilText(page, '#survey', '10,000 keys');
    await until(
      async () => (await listedKeys(page)).slice(0, 2).join() === 'tenant-7777,tenant-42',
    );
    expect(await page.locator('#keys tr').count()).toBe(50);
    await page.getByRole('button', { name: 'Show more' }).click();
    await until(async () => (await page.locator('#keys tr').count()) === 100);
    await page.getByLabel('Search for keys').fill('tenant-9999');
    await untilListed(page, ['tenant-9999']);
    await checkAll(Array.from({ length: 5 }, () => 'tenant-1234'));
    await page.getByLabel('Search for keys').fill('');
    await until(async () => (await listedKeys(page))[0] === 'tenant-1234');
    expect(complaints).toEqual([]);
  });
});
