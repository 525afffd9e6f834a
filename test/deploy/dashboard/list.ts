import type { Page } from 'playwright-core';

import type { TestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { untilWaiting } from '../../support/debug-state.js';
import {
  begin,
  checkTimes,
  type PendingRequest,
  ratePath,
  send,
} from '../../support/http-client.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import type { RedisForTests } from '../../support/use-redis.js';
import { listedKeys, rowOf, untilListed, untilText } from './seen.js';
import type { Open } from './use-browser.js';

const CONSOLE = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const IS_WIDER = 'document.documentElement.scrollWidth > innerWidth';
const STYLE_OF_USED = `{
  const style = getComputedStyle(document.querySelector('#keys td:nth-child(5)'));
  [style.textAlign, style.fontVariantNumeric];
}`;

export function describeList(open: Open, redis: RedisForTests): void {
  describe('the dashboard', () => {
    const start = useApps();

    describe.each(bothLimiters(redis))('%s limiter', (_name, settings) => {
      let app: TestApp;
      let waiting: PendingRequest;
      let full: PendingRequest | undefined;
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
        full?.disconnect();
      });
      /** Usage, limit, waiters, denials, and why. */
      const cellsOf = async (page: Page, key: string): Promise<string[]> =>
        (await rowOf(page, key).locator('td').allTextContents())
          .slice(3)
          .map((text) => text.trim());

      test('shows first what needs a person, with its state, why, since when and who', async () => {
        for (const key of ['paused', 'held', 'full']) await checkTimes(app.url, key, 1);
        await send(app.url, 'PUT', `${ratePath('paused')}?pauseMillis=600000`);
        await checkTimes(app.url, 'paused', 1);
        await checkTimes(app.url, 'held', 1, '?holdMillis=600000&holder=ci-7');
        await checkTimes(app.url, 'full', 3);
        full = begin(app.url, 'POST', `${ratePath('full')}?canWait=true&maxRequestsInQueue=1`);
        await untilWaiting(app.url, 'full', 1);
        const { page, complaints } = await open(`${app.url}/ui`);
        await untilListed(page, ['paused', 'denied', 'full', 'queue', 'held', 'half']);

        expect(await page.locator('#keys .chip').allTextContents()).toEqual([
          ...['paused', 'denied', 'queue full', 'waiting', 'held', 'used'],
        ]);
        expect(await cellsOf(page, 'paused')).toEqual([
          ...['1', 'of 4 per 1 h', ''],
          expect.stringMatching(/^[\d.]+\/s$/),
          expect.stringMatching(
            /^paused for (?:9 min \d+ s|10 min) more; denied since [\d:]+ \(.+\)$/,
          ),
        ]);
        expect(await cellsOf(page, 'denied')).toEqual([
          ...['4', 'of 4 per 1 h', ''],
          expect.stringMatching(/^[\d.]+\/s$/),
          expect.stringMatching(/^limit reached since [\d:]+ \(.+\)$/),
        ]);
        expect(await cellsOf(page, 'queue')).toEqual([
          ...['4', 'of 4 per 1 h', '1 of 9'],
          expect.stringMatching(/^(?:0\/s)?$/),
          '',
        ]);
        expect(await cellsOf(page, 'held')).toEqual([
          ...['2', 'of 4 per 1 h', ''],
          expect.stringMatching(/^(?:0\/s)?$/),
          expect.stringMatching(/^held by ci-7 since [\d:]+ \(.+\)$/),
        ]);
        expect(await page.title()).toBe('2 denied – Sluice');
        expect(complaints).toEqual([]);
      });

      test('shows changes without a reload', async () => {
        const { page } = await open(`${app.url}/ui`);
        await untilListed(page, ['denied', 'queue', 'half']);
        await checkTimes(app.url, 'half', 12);
        await untilListed(page, ['half', 'denied', 'queue']);
        expect(await page.title()).toBe('2 denied – Sluice');
      });

      test('finds keys by a part of them, and by their state', async () => {
        const { page } = await open(`${app.url}/ui`);
        await page.getByLabel('Search for keys').fill('QUE');
        await untilListed(page, ['queue']);
        await untilText(page, '#survey', '1 of 3 keys');
        await page.getByLabel('Search for keys').fill('nobody');
        await untilText(page, '#keys-none', 'No keys.');
        await page.getByLabel('Search for keys').fill('');
        await page.getByRole('radio', { name: 'denied 1' }).check();
        await untilListed(page, ['denied']);
        await page.getByRole('radio', { name: 'used 3' }).check();
        await untilListed(page, ['denied', 'queue', 'half']);
      });

      test('names the replica, the store and the rules, and counts decisions', async () => {
        const { page } = await open(`${app.url}/ui`);
        await untilText(page, '#approved', /^[\d.]+$/);
        const { replica, store } = (await send(app.url, 'GET', '/ui/data')).json() as {
          replica: string;
          store: string;
        };
        await untilText(page, '#replicas', new RegExp(`^${replica}: .*answers this page$`));
        await untilText(page, '#store', store);
        await untilText(page, '#store-state', /^up$/);
        await untilText(page, '#rules', 'none, only settings');
        await untilText(page, '#waiting-total', /^1$/);
      });

      test('shows a key that is busy below its limit, with its approvals of the last minutes', async () => {
        const { page, complaints } = await open(`${app.url}/ui`);
        await checkTimes(app.url, 'hot', 30, '?maxRequests=1000');
        await page.getByLabel('Sort').selectOption('busiest first');
        await until(async () => (await listedKeys(page))[0] === 'hot');
        const row = rowOf(page, 'hot');
        await row.locator('td', { hasText: /^[1-9][\d.]*\/s$/ }).waitFor();
        const name = /^approvals of the last 5 min: now [\d.]+\/s, at most [\d.]+\/s$/;
        await row.getByRole('img', { name }).waitFor();
        // Its history did not begin with the look at it.
        await row.getByRole('link').click();
        await untilText(page, '#history-note', 'Counted since');
        expect(complaints).toEqual([]);
      });

      test('says how many are at work of a key whose approvals are all held', async () => {
        const path = `${ratePath('mutex')}?maxRequests=1&holdMillis=600000&holder=`;
        const { request_id: id } = (await send(app.url, 'POST', `${path}ci-7`)).json() as {
          request_id: string;
        };
        await checkTimes(app.url, 'pool', 2, '?maxRequests=3&holdMillis=600000&holder=w');
        const { page } = await open(`${app.url}/ui`);
        await until(async () => (await listedKeys(page)).length === 5);
        const [used, limit, , , why] = await cellsOf(page, 'mutex');
        expect([used, limit]).toEqual(['1', 'of 1 at once']);
        expect(why).toMatch(/^1 at work, held by ci-7 since [\d:]+ \(.+\)$/);
        const pool = await cellsOf(page, 'pool');
        expect(pool.slice(0, 2)).toEqual(['2', 'of 3 at once']);
        expect(pool.at(-1)).toMatch(/^2 at work, held by w since [\d:]+ \(.+\), and 1 other$/);

        await until(async () => (await rowOf(page, 'mutex').getByRole('img').count()) === 1);
        await send(app.url, 'DELETE', `${ratePath('mutex')}/${id}`);
        await until(async () => (await cellsOf(page, 'mutex'))[0] === '0');
        expect((await cellsOf(page, 'mutex'))[1]).toBe('of 1 at once');
      });

      test('sends requests only to the service', async () => {
        const { page, requests } = await open(`${app.url}/ui`);
        await until(() => requests.filter((one) => one.includes('/ui/data')).length >= 2);
        await page.getByRole('link', { name: 'queue', exact: true }).click();
        await untilText(page, '#waiting', /\d+ m?s/);
        for (const request of requests) expect(request).toContain(` ${app.url}/`);
      });
    });

    test('shows 30 keys at once at 1280x800, with columns of digits that line up', async () => {
      const app = await start({ MAX_REQUESTS: '1000', WINDOW_MILLIS: '3600000' });
      const keys = Array.from({ length: 30 }, (_, i) => `tenant-${i + 1}/chat-completions`);
      await checkMany(
        app.url,
        keys.flatMap((key, i) => [{ key, hits: i * 9 + 1 }, { key }]),
      );
      await checkTimes(app.url, keys[0]!, 1, '?hits=999');
      const { page } = await open(`${app.url}/ui`, { viewport: CONSOLE });
      await until(async () => (await listedKeys(page)).length === 30);

      const last = await page.locator('#keys tr').last().boundingBox();
      expect(last!.y + last!.height).toBeLessThanOrEqual(CONSOLE.height);
      expect(await page.evaluate(IS_WIDER)).toBe(false);
      expect(await page.evaluate(STYLE_OF_USED)).toEqual(['right', 'tabular-nums']);
    });

    test('is readable on a phone, without a horizontal scroll', async () => {
      const app = await start({ MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000' });
      const key = `tenant/${'long-name-'.repeat(12)}`;
      await checkTimes(app.url, key, 3);
      await checkTimes(app.url, 'deploy', 1, '?holdMillis=600000&holder=ci-7');
      const { page, complaints } = await open(`${app.url}/ui`, { viewport: PHONE });
      await untilListed(page, [key, 'deploy']);

      expect(await page.evaluate(IS_WIDER)).toBe(false);
      // Its rates may not be known yet.
      expect(await rowOf(page, 'deploy').innerText()).toMatch(
        /^held\s*deploy(?:[^]*\s)?1\s+of 1 at once[^]*1 at work, held by ci-7 since /,
      );
      await page.goto(`${app.url}/ui#key=deploy`);
      await untilText(page, '#holders tr', 'ci-7');
      expect(await page.evaluate(IS_WIDER)).toBe(false);
      expect(complaints).toEqual([]);
    });

    test('sends nothing while the page is hidden, and asks at once when it is visible again', async () => {
      const app = await start();
      // From the start, so that no timer of the page is a real one.
      const { page, requests } = await open(`${app.url}/ui`, {}, (before) =>
        before.clock.install(),
      );
      const asked = (): number => requests.filter((one) => one.includes('/ui/data')).length;
      await untilText(page, '#pulse', 'live');
      const setVisibility = (state: 'hidden' | 'visible'): Promise<void> =>
        page.evaluate(`{
        Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${state}' });
        document.dispatchEvent(new Event('visibilitychange'));
      }`);
      await setVisibility('hidden');
      const before = asked();
      await page.clock.pauseAt(Date.now() + 60_000);
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
      expect(await page.locator('#store-state').textContent()).toBe('not known');
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
}
