import type { Page } from 'playwright-core';

import { until } from '../../support/until.js';

/** The keys in the list, in its order. */
export function listedKeys(page: Page): Promise<string[]> {
  return page.locator('#keys a').allTextContents();
}

/** Resolves when the list of a page that is live has exactly these keys, in their order. */
export async function untilListed(page: Page, keys: readonly string[]): Promise<void> {
  // A page that lost a file is live only after it has loaded again.
  await untilText(page, '#pulse', 'live');
  await until(async () => (await listedKeys(page)).join('\n') === keys.join('\n'));
}

/** The row of a key in the list. */
export function rowOf(page: Page, key: string): ReturnType<Page['locator']> {
  return page.locator('#keys tr', { has: page.getByRole('link', { name: key, exact: true }) });
}

/** Resolves when an element contains this text. */
export async function untilText(
  page: Page,
  selector: string,
  text: string | RegExp,
): Promise<void> {
  try {
    await page.locator(selector).filter({ hasText: text }).first().waitFor();
  } catch (cause) {
    throw new Error(`${selector} has no ${String(text)}; the page: ${await stateOf(page)}`, {
      cause,
    });
  }
}

/** Why a page may show nothing: its visibility, its messages, and the files that it has loaded. */
async function stateOf(page: Page): Promise<string> {
  return page.evaluate<string>(`JSON.stringify({
    visibility: document.visibilityState,
    ready: document.readyState,
    pulse: document.getElementById('pulse')?.textContent,
    banner: document.getElementById('banner')?.textContent,
    detail: document.getElementById('detail-state')?.textContent,
    loaded: performance.getEntriesByType('resource').map(
      ({ name, startTime, duration, responseStatus }) =>
        [new URL(name).pathname, Math.round(startTime), Math.round(duration), responseStatus],
    ),
  })`);
}

/** Opens a part of a key's detail that is folded. */
export async function unfold(page: Page, title: string): Promise<void> {
  await page.locator('summary', { hasText: title }).click();
}
