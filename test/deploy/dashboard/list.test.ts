import type { TestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { untilWaiting } from '../../support/debug-state.js';
import {
  approve,
  begin,
  checkTimes,
  type PendingRequest,
  ratePath,
  send,
} from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';
import { listedKeys, rowOf, untilListed, untilText } from './seen.js';
import { describeInBrowser, useBrowser } from './use-browser.js';

const redis = useRedis();
const start = useApps();

describeInBrowser('the dashboard in a browser', () => {
  const open = useBrowser();

  describe.each(bothLimiters(redis))('%s limiter', (_name, settings) => {
    let app: TestApp;
    let waiting: PendingRequest;
    beforeEach(async () => {
      app = await start({
        ...settings(),
        WINDOW_MILLIS: '3600000',
        MAX_REQUESTS: '4',
        MAX_REQUESTS_IN_QUEUE: '9',
      });
      await checkTimes(app.url, 'half', 2);
      await checkTimes(app.url, 'queue', 4);
      await checkTimes(app.url, 'denied', 7);
      waiting = begin(app.url, 'POST', `${ratePath('queue')}?canWait=true`);
      await untilWaiting(app.url, 'queue', 1);
    });
    afterEach(() => {
      waiting.disconnect();
    });

    test('shows at once which key is denied, why, and since when', async () => {
      const { page, complaints } = await open(`${app.url}/ui`);
      const denied = page.locator('#denied li');
      await denied.first().waitFor();

      expect(await denied.count()).toBe(1);
      expect(await denied.textContent()).toMatch(
        /denied\s+limit reached\s+since [\d:]+ \(.+\), 3 times, last (?:just now|.+ ago)\s+[\d.]+\/s/,
      );
      expect(await page.title()).toBe('1 denied – Sluice');
      expect(complaints).toEqual([]);
    });

    test('shows keys with their fill, queue and denials, in the chosen order', async () => {
      const { page } = await open(`${app.url}/ui`);
      await untilListed(page, ['denied', 'queue', 'half']);
      await page.getByLabel('Longest queue').check();
      await untilListed(page, ['queue', 'denied', 'half']);
      await page.getByLabel('Fullest').check();
      await untilListed(page, ['queue', 'denied', 'half']);

      const cells = await rowOf(page, 'half').locator('.value').allTextContents();
      expect(cells).toEqual(['2 of 4', '0 of 9', 'none']);
      const queue = rowOf(page, 'queue').locator('.value').nth(1);
      expect(await queue.textContent()).toBe('1 of 9');
    });

    test('shows what is held of a key, if anything is', async () => {
      await checkTimes(app.url, 'half', 1, '?holdMillis=3600000');
      const { page } = await open(`${app.url}/ui`);
      await untilListed(page, ['denied', 'queue', 'half']);
      const usage = rowOf(page, 'half').locator('.value').first();
      expect(await usage.textContent()).toBe('3 of 4, 1 held');
    });

    test('shows changes without a reload', async () => {
      const { page } = await open(`${app.url}/ui`);
      await untilListed(page, ['denied', 'queue', 'half']);
      await checkTimes(app.url, 'half', 6);
      await untilListed(page, ['half', 'denied', 'queue']);
      expect(await page.locator('#denied a').allTextContents()).toEqual(['half', 'denied']);
    });

    test('finds keys by a part of them', async () => {
      const { page } = await open(`${app.url}/ui`);
      await page.getByLabel('Search for keys').fill('QUE');
      await untilListed(page, ['queue']);
      await untilText(page, '#survey', '1 of 3 keys');
      await page.getByLabel('Search for keys').fill('nobody');
      await untilText(page, '#keys-none', 'No keys.');
    });

    test('folds the keys that are idle', async () => {
      const idle = `idle-${uniqueKey()}`;
      const id = await approve(app.url, idle);
      await send(app.url, 'DELETE', `${ratePath(idle)}/${id}`);
      const { page } = await open(`${app.url}/ui`);
      const button = page.getByRole('button', { name: 'Show 1 idle key' });
      await button.waitFor();
      expect(await listedKeys(page)).not.toContain(idle);
      await button.click();
      expect(await listedKeys(page)).toContain(idle);
      await page.getByRole('button', { name: 'Hide 1 idle key' }).click();
      expect(await listedKeys(page)).not.toContain(idle);
      await page.getByLabel('Search for keys').fill(idle);
      await untilListed(page, [idle]);
    });

    test('names the replica, the store and the rules, and counts decisions', async () => {
      const { page } = await open(`${app.url}/ui`);
      await untilText(page, '#rate', /^[\d.]+$/);
      const { replica, store } = (await send(app.url, 'GET', '/ui/data')).json() as {
        replica: string;
        store: string;
      };
      await untilText(page, '#replicas', new RegExp(`^${replica}: .*answers this page$`));
      await untilText(page, '#store', store);
      await untilText(page, '#rules', 'none, only settings');
      await untilText(page, '#rate-parts', '1 waiting');
    });

    test('sends requests only to the service', async () => {
      const { page, requests } = await open(`${app.url}/ui`);
      await until(() => requests.filter((one) => one.includes('/ui/data')).length >= 2);
      await page.getByRole('link', { name: 'queue', exact: true }).first().click();
      await untilText(page, '#waiting', /on /);
      for (const request of requests) expect(request).toContain(` ${app.url}/`);
    });
  });

  test('sends nothing while the page is hidden, and asks at once when it is visible again', async () => {
    const app = await start();
    const { page, requests } = await open(`${app.url}/ui`);
    const asked = (): number => requests.filter((one) => one.includes('/ui/data')).length;
    await until(() => asked() >= 1);
    const setVisibility = (state: 'hidden' | 'visible'): Promise<void> =>
      page.evaluate(`{
        Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${state}' });
        document.dispatchEvent(new Event('visibilitychange'));
      }`);
    await page.clock.install();
    await setVisibility('hidden');
    const before = asked();
    await page.clock.runFor(60_000);
    expect(asked()).toBe(before);
    await setVisibility('visible');
    await until(() => asked() === before + 1);
  });

  test('says that the service is down, and notices its return', async () => {
    const app = await start();
    const { page } = await open(`${app.url}/ui`);
    await untilText(page, '#pulse', 'live');
    await page.route('**/ui/data*', (route) => route.abort());
    await untilText(page, '#banner', /No answer since .+ Retrying/);
    await page.unroute('**/ui/data*');
    await page.locator('#banner').waitFor({ state: 'hidden' });
  });

  test('shows keys of any text as plain text', async () => {
    const app = await start({ MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000' });
    const keys = ['<img src=x onerror=alert(1)>', '__proto__', '..', 'a/b?c#d', 'ключ'];
    await checkMany(
      app.url,
      [...keys, ...keys].map((key) => ({ key })),
    );
    const { page, complaints } = await open(`${app.url}/ui`);
    await untilText(page, '#survey', `${keys.length} keys`);
    for (const key of keys) {
      await page.locator('#keys').getByRole('link', { name: key, exact: true }).click();
      await until(async () => (await page.locator('#detail-title').textContent()) === key);
      await untilText(page, '#detail-state', /Denied since/);
      await page.keyboard.press('Escape');
    }
    expect(complaints).toEqual([]);
  });
});
