import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';

import type { Page } from 'playwright-core';

import { acceptsConnections } from '../support/accepts-connections.js';
import { freePort } from '../support/free-port.js';
import { until } from '../support/until.js';
import { describeInBrowser, useBrowser } from './dashboard/use-browser.js';
import { ROOT } from './repository-files.js';

const BUILD_TIMEOUT_MILLIS = 300_000;
/** The width of a phone, in CSS pixels. */
const PHONE = 390;

describeInBrowser('the site of the pages', () => {
  const open = useBrowser();
  let url: string;
  let server: ChildProcess;
  beforeAll(async () => {
    // It fails if a link leads nowhere.
    execFileSync('npm', ['run', '--silent', 'docs'], { cwd: ROOT, stdio: 'ignore' });
    const port = await freePort();
    url = `http://localhost:${port}`;
    server = spawn('npx', ['--no', 'vitepress', 'preview', '--port', String(port)], {
      cwd: `${ROOT}docs/site`,
      detached: true,
      stdio: 'ignore',
    });
    await until(() => acceptsConnections(port));
  }, BUILD_TIMEOUT_MILLIS);
  afterAll(async () => {
    const closed = once(server, 'close');
    process.kill(-server.pid!, 'SIGTERM');
    await closed;
  });

  async function opened(path: string, width: number): Promise<Page> {
    const { page } = await open(url + path, { viewport: { width, height: 800 } });
    await page.waitForLoadState('networkidle');
    // Until Vue has taken over, the page ignores keys.
    await page.waitForFunction("document.querySelector('#app')?.__vue_app__ !== undefined");
    return page;
  }

  test('finds a page by a word in its text', async () => {
    const page = await opened('/', 1280);
    await page.keyboard.press('Control+k');
    await page.fill('.VPLocalSearchBox input', 'max_requests_in_queue_per_group');
    await page.click('.VPLocalSearchBox .result[href*="/rule-fields"] >> nth=0');
    await page.waitForURL(/rule-fields/);
    // The address changes before the page is there.
    await page.waitForSelector('main h1:has-text("Rule fields")');
    expect(await page.textContent('main')).toContain('max_requests_in_queue_per_group');
  });

  test('leads from the sidebar to a page, and from there to a file that it names', async () => {
    const page = await opened('/', 1280);
    await page.click('.VPSidebar >> text="Jobs and CI"');
    const link = page.locator('main >> text="database.mjs"');
    const file = await fetch(new URL((await link.getAttribute('href'))!, url));
    expect(await file.text()).toContain('withPermit');
  });

  test.each(['/', '/rule-fields', '/jobs-and-ci'])('%s fits a phone', async (path) => {
    const page = await opened(path, PHONE);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE);
  });
});
