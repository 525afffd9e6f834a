import type { Page } from 'playwright-core';

import { debugState } from '../../../support/debug-state.js';
import { send } from '../../../support/http-client.js';
import { uniqueKey } from '../../../support/unique-key.js';
import { until } from '../../../support/until.js';
import { useApp } from '../../../support/use-apps.js';
import { untilText } from '../../dashboard/seen.js';
import { describeInBrowser, useBrowser, type WatchedPage } from '../../dashboard/use-browser.js';

const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED';
const CHECK = '#operations-Checks-check';

describeInBrowser('the page of the HTTP API', () => {
  const open = useBrowser();
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000' }));

  /**
   * Opens the page, again if Chromium has dropped a request because the machine's addresses changed. They change with
   * each network of containers that other tests start.
   */
  const openDocs = async (viewport = DESKTOP): Promise<WatchedPage> => {
    const dropped: string[] = [];
    const watched = await open(`${app.url}/docs`, { viewport }, (page) => {
      page.on('requestfailed', (request) => {
        if (request.failure()?.errorText === NETWORK_CHANGED) dropped.push(request.url());
      });
      return Promise.resolve();
    });
    const operations = watched.page.locator('.opblock');
    await until(async () => dropped.length > 0 || (await operations.count()) > 0);
    return dropped.length > 0 ? openDocs(viewport) : watched;
  };

  const tryCheck = async (page: Page, key: string): Promise<void> => {
    const operation = page.locator(CHECK);
    await operation.locator('.opblock-summary-control').click();
    await operation.getByRole('button', { name: 'Try it out' }).click();
    await operation.getByPlaceholder('key', { exact: true }).fill(key);
    await operation.getByRole('button', { name: 'Execute' }).click();
    await untilText(page, `${CHECK} .live-responses-table .response-col_status`, /^200/);
  };

  const isWiderThanSeen = (page: Page): Promise<boolean> =>
    page.evaluate('document.documentElement.scrollWidth > innerWidth');

  test('shows each operation, connects only to the service, and keeps its own policy', async () => {
    const { paths } = (await send(app.url, 'GET', '/openapi.json')).json() as {
      paths: Record<string, object>;
    };
    const operations = Object.values(paths).flatMap((path) => Object.keys(path));
    const { page, requests, complaints } = await openDocs();

    expect(await page.locator('.opblock').count()).toBe(operations.length);
    expect(requests).toContain(`GET ${app.url}/openapi.json`);
    for (const request of requests) expect(request).toContain(` ${app.url}/`);
    expect(complaints).toEqual([]);
  });

  test('tries an operation', async () => {
    const key = uniqueKey();
    const { page, requests, complaints } = await openDocs();
    await tryCheck(page, key);

    expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 1 });
    for (const request of requests) expect(request).toContain(` ${app.url}/`);
    expect(complaints).toEqual([]);
  });

  test('does not scroll sideways on a phone, even with an answer and an expanded schema', async () => {
    const { page, complaints } = await openDocs(PHONE);
    expect(await isWiderThanSeen(page)).toBe(false);
    await tryCheck(page, `${uniqueKey()}-${'long'.repeat(100)}`);
    await page.getByRole('button', { name: 'Expand all' }).first().click();
    expect(await isWiderThanSeen(page)).toBe(false);
    expect(complaints).toEqual([]);
  });
});
