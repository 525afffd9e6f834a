import type { Page } from 'playwright-core';

import { untilWaiting } from '../../support/debug-state.js';
import { begin, type PendingRequest, ratePath, send } from '../../support/http-client.js';
import { extent } from '../../support/extent.js';
import { until } from '../../support/until.js';
import { useApp, useApps } from '../../support/use-apps.js';
import { violationsOf } from './axe.js';
import { rowOf, unfold, untilListed, untilText } from './seen.js';
import type { Open } from './use-browser.js';

const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1280, height: 900 };
type Scheme = 'light' | 'dark';
const SCHEMES: readonly Scheme[] = ['light', 'dark'];

export function describeAccessForAll(open: Open): void {
  describe('the accessibility of the dashboard', () => {
    const start = useApps();
    const app = useApp(() => ({ MAX_REQUESTS: '2', WINDOW_MILLIS: '3600000' }));
    let waiting: PendingRequest;
    beforeAll(async () => {
      for (const key of ['one', 'two', 'two', 'two', 'three', 'three']) {
        await send(app.url, 'POST', ratePath(key));
      }
      waiting = begin(app.url, 'POST', `${ratePath('three')}?canWait=true`);
      await untilWaiting(app.url, 'three', 1);
    });
    afterAll(() => {
      waiting.disconnect();
    });

    const isWiderThanSeen = (page: Page): Promise<boolean> =>
      page.evaluate('document.documentElement.scrollWidth > innerWidth');

    describe.each([
      ['phone', PHONE, extent<readonly Scheme[]>(['dark'], SCHEMES)],
      ['desktop', DESKTOP, extent<readonly Scheme[]>(['light'], SCHEMES)],
    ])('%s', (_size, viewport, schemes) => {
      describe.each(schemes)('%s', (colorScheme) => {
        test('the list breaks no rule of accessibility, and fits', async () => {
          const { page } = await open(`${app.url}/ui`, { viewport, colorScheme });
          await untilText(page, '#keys', 'three');
          expect(await violationsOf(page)).toEqual([]);
          expect(await isWiderThanSeen(page)).toBe(false);
        });

        test('a key in detail breaks no rule of accessibility, and fits', async () => {
          const { page } = await open(`${app.url}/ui#key=three`, { viewport, colorScheme });
          await untilText(page, '#waiting tr', /\d+ m?s/);
          for (const title of ['matching rules', 'Try a check']) await unfold(page, title);
          await page.getByRole('button', { name: 'Check', exact: true }).click();
          await untilText(page, '#tried li', '429');
          expect(await violationsOf(page)).toEqual([]);
          expect(await isWiderThanSeen(page)).toBe(false);
        });

        test('the form for a token breaks no rule of accessibility', async () => {
          const reader = { name: 'reader', token: 'token-of-the-reader', scopes: ['debug'] };
          const guarded = await start({}, { tokens: [reader] });
          const { page } = await open(`${guarded.url}/ui`, { viewport, colorScheme });
          await untilText(page, '#token-problem', 'a bearer token is required');
          expect(await violationsOf(page)).toEqual([]);
        });
      });
    });

    test('everything can be reached and done with the keyboard', async () => {
      const { page } = await open(`${app.url}/ui`, { viewport: DESKTOP });
      await untilText(page, '#keys', 'three');
      const focused = (): Promise<string> =>
        page.evaluate(`document.activeElement.id || document.activeElement.textContent.trim()`);
      const tabTo = async (wanted: string): Promise<void> => {
        for (let i = 0; i < 40 && (await focused()) !== wanted; i += 1) {
          await page.keyboard.press('Tab');
        }
        expect(await focused()).toBe(wanted);
      };
      await tabTo('search');
      await page.keyboard.press('Tab');
      await page.keyboard.press('Tab');
      for (let i = 0; i < 4; i += 1) await page.keyboard.press('ArrowDown');
      await untilListed(page, ['three']);
      await tabTo('three');
      await page.keyboard.press('Enter');
      await until(async () => (await focused()) === 'detail-title');
      await untilText(page, '#detail-state', /denied/i);
      await tabTo('Try a check');
      await page.keyboard.press('Enter');
      await tabTo('Check');
      await page.keyboard.press('Enter');
      await untilText(page, '#tried li', '429');
      await page.keyboard.press('Escape');
      await page.locator('#detail').waitFor({ state: 'hidden' });
      expect(await focused()).toBe('three');
    });

    test('the focused row keeps the focus and its place while others overtake it', async () => {
      const own = await start({ MAX_REQUESTS: '9', WINDOW_MILLIS: '3600000' });
      for (const key of ['first', 'first', 'second']) await send(own.url, 'POST', ratePath(key));
      const { page } = await open(`${own.url}/ui`, { viewport: DESKTOP });
      await untilListed(page, ['first', 'second']);
      const link = page.locator('#keys').getByRole('link', { name: 'first' });
      await link.focus();
      for (let i = 0; i < 7; i += 1) await send(own.url, 'POST', ratePath('second'));
      await rowOf(page, 'second').getByText('8', { exact: true }).waitFor();
      await untilListed(page, ['first', 'second']);
      expect(await page.evaluate('document.activeElement.textContent')).toBe('first');
      await page.getByLabel('Search for keys').focus();
      await untilListed(page, ['second', 'first']);
    });
  });
}
