import type { Page, Route } from 'playwright-core';

import { ratePath, send } from '../../support/http-client.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';
import { untilListed, untilText } from './seen.js';
import type { Open } from './use-browser.js';

export function describeLostFiles(open: Open): void {
  describe('a dashboard that loses a file while it loads', () => {
    const app = useApp(() => ({ WINDOW_MILLIS: '3600000' }));
    beforeAll(() => send(app.url, 'POST', ratePath('job')));

    /** Opens the page while all requests for a file are lost. */
    const openWithout = (file: string): ReturnType<typeof open> =>
      open(`${app.url}/ui`, {}, (page) => page.route(`**/ui/${file}`, lose));
    const lose = (route: Route): Promise<void> => route.abort('connectionreset');
    const untilSaid = (page: Page): Promise<void> =>
      untilText(page, '#pulse', /^not loaded: .+; retrying …$/);

    test.each(['main.js', 'dom.js', 'style.css', 'uplot.js', 'uplot.css'])(
      'says so, and loads again until it has every file: %s',
      async (file) => {
        const { page, complaints } = await openWithout(file);
        await untilSaid(page);
        await page.unrouteAll();

        await untilListed(page, ['job']);
        expect(complaints).toEqual([]);
      },
    );

    test('stays as it is while the service is down', async () => {
      const { page, requests, complaints } = await open(`${app.url}/ui`, {}, async (before) => {
        await before.route('**/ui/main.js', lose);
        await before.route('**/ui', lose);
        await before.route('**/ui', (route) => route.continue(), { times: 1 });
      });
      const asked = (): number => requests.filter((one) => one === `HEAD ${app.url}/ui`).length;
      await until(() => asked() >= 2);
      await untilSaid(page);
      await page.unrouteAll();

      await untilListed(page, ['job']);
      expect(complaints).toEqual([]);
    });

    test('sends nothing while it is hidden', async () => {
      const setVisibility = (state: 'hidden' | 'visible'): string =>
        `Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${state}' })`;
      const { page, requests } = await open(`${app.url}/ui`, {}, async (before) => {
        await before.route('**/ui/main.js', lose);
        await before.addInitScript(setVisibility('hidden'));
        await before.clock.install();
      });
      await untilSaid(page);
      const asked = (): string[] => requests.filter((one) => one.startsWith('HEAD'));
      await page.clock.pauseAt(Date.now() + 60_000);
      await page.clock.runFor(60_000);
      expect(asked()).toEqual([]);
      await page.evaluate(setVisibility('visible'));
      await page.clock.runFor(2000);
      await until(() => asked().length === 1);
    });
  });
}
