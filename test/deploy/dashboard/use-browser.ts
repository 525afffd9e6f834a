import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

import { provided } from '../../support/provided.js';

/** A page, its requests and the errors that the browser reports. */
export interface WatchedPage {
  readonly page: Page;
  /** Every request so far: its method and URL. */
  readonly requests: readonly string[];
  /** Errors of scripts, and violations of the content security policy. */
  readonly complaints: readonly string[];
}

/**
 * The page asks the service every two seconds, and a page that lost a file loads again after as long. Ten times as often.
 * A button says for 1.5 s that it has copied. So long that a test sees it.
 */
const CHANGED_PAUSES = `{
  const { setTimeout: wait } = window;
  const changed = (millis) => (millis === 1500 ? 60_000 : millis >= 2000 ? millis / 10 : millis);
  window.setTimeout = (callback, millis, ...rest) => wait(callback, changed(millis), ...rest);
}`;

type ContextOptions = Parameters<Browser['newContext']>[0];

/**
 * Opens a page.
 * @param prepare runs before the page loads
 */
export type Open = (
  url: string,
  options?: ContextOptions,
  prepare?: (page: Page) => Promise<unknown>,
) => Promise<WatchedPage>;

/** The Chromium that `scripts/lib/find-chromium.mjs` has found, or empty. */
export function chromiumProgram(): string {
  return provided('SLUICE_TEST_CHROMIUM');
}

/** `describe` for tests in a browser. Skipped without a browser, which `find-chromium.mjs` announces. */
export function describeInBrowser(title: string, tests: () => void): void {
  if (chromiumProgram() === '') describe.skip(title, tests);
  else describe(title, tests);
}

/**
 * One browser for the tests of a `describe`. Each page has a profile of its own, which ends with its test.
 * @param args more arguments for its process
 */
export function useBrowser(...args: string[]): Open {
  let browser: Browser;
  const contexts: BrowserContext[] = [];
  beforeAll(async () => {
    // Chromium's sandbox needs rights that root in a container does not have.
    browser = await chromium.launch({
      executablePath: chromiumProgram(),
      args: ['--no-sandbox', '--disable-dev-shm-usage', ...args],
    });
  });
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
  });
  afterAll(() => browser.close());

  return async (url, options = {}, prepare) => {
    // Where noon has just been: a moment an hour away is still shown without its date.
    const timezoneId = `Etc/GMT${String(new Date().getUTCHours() - 12).replace(/^(?=\d)/, '+')}`;
    const context = await browser.newContext({ locale: 'en-GB', timezoneId, ...options });
    contexts.push(context);
    await context.addInitScript(CHANGED_PAUSES);
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    const requests: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => requests.push(`${request.method()} ${request.url()}`));
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      // A denied check is also an error in the console.
      const isAnswer = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !isAnswer) complaints.push(message.text());
    });
    await prepare?.(page);
    await page.goto(url);
    return { page, requests, complaints };
  };
}
