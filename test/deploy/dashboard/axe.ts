import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe-core finds wrong with a page as it is shown: each rule, and where it is broken. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(SOURCE);
  // The function runs in the page, which has the global of the source.
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary ?? ''}`).join('; ')}`,
  );
}
