import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

import { provided } from '../../support/provided.js';

/** A page, and what the browser has to say of it. */
export interface WatchedPage {
  readonly page: Page;
  /** Every request so far: its method and URL. */
  readonly requests: readonly string[];
  /** Errors of scripts, and what the content security policy has forbidden. */
  readonly complaints: readonly string[];
}

/**
 * Chromium drops the requests that wait for a connection when the machine gets another address, as it does with each
 * network of containers that tests beside these begin or end. A page then lacks some of its scripts.
 */
const NETWORK_CHANGED = 'net::ERR_NETWORK_CHANGED';

type ContextOptions = Parameters<Browser['newContext']>[0];

/** The Chromium that `scripts/lib/find-chromium.mjs` has found, or empty. */
export function chromiumProgram(): string {
  return provided('SLUICE_TEST_CHROMIUM');
}

/** `describe` for tests in a browser. Skipped where there is none, which `find-chromium.mjs` announces. */
export function describeInBrowser(title: string, tests: () => void): void {
  if (chromiumProgram() === '') describe.skip(title, tests);
  else describe(title, tests);
}

/** One browser for the tests of a `describe`; each page has a profile of its own, which ends with its test. */
export function useBrowser(): (url: string, options?: ContextOptions) => Promise<WatchedPage> {
  let browser: Browser;
  const contexts: BrowserContext[] = [];
  beforeAll(async () => {
    // Its own sandbox is more than a container lets root have.
    browser = await chromium.launch({
      executablePath: chromiumProgram(),
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    });
  });
  afterEach(async () => {
    await Promise.all(contexts.splice(0).map((context) => context.close()));
  });
  afterAll(() => browser.close());

  return async (url, options = {}) => {
    const context = await browser.newContext({ locale: 'en-GB', ...options });
    contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    const requests: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => requests.push(`${request.method()} ${request.url()}`));
    page.on('pageerror', (error) => complaints.push(String(error)));
    page.on('console', (message) => {
      // A refused check is an error in the console, too.
      const isAnswer = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !isAnswer) complaints.push(message.text());
    });
    const dropped: string[] = [];
    page.on('requestfailed', (request) => {
      if (request.failure()?.errorText === NETWORK_CHANGED) dropped.push(request.url());
    });
    await page.goto(url);
    while (dropped.splice(0).length > 0) await page.reload();
    return { page, requests, complaints };
  };
}
