import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The rules of axe-core that a page breaks as it is shown, each with the places. */
export async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(SOURCE);
  // The function runs in the page, where the source defines the global.
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary ?? ''}`).join('; ')}`,
  );
}
