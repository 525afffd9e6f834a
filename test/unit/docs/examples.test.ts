import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { pages, readPage, ROOT } from '../../support/docs/pages.js';

const FOLDER = 'docs/examples';
const FENCE = /^```(?:js|python|go)\n([\s\S]*?)^```$/gm;
const PROGRAMS: Readonly<Record<string, string>> = { mjs: 'node', py: 'python3', go: 'go run' };

test('each example is on one page, and no page has other examples', () => {
  const shown = pages().flatMap((page) =>
    [...readPage(page).matchAll(FENCE)].map(([, code]) => code),
  );
  const files = readdirSync(join(ROOT, FOLDER));

  const examples = files.map((file) => readFileSync(join(ROOT, FOLDER, file), 'utf8'));
  expect(examples.length).toBeGreaterThan(0);
  expect([...shown].sort()).toEqual([...examples].sort());
});

test('a page has the command that runs each example', () => {
  const commands = pages().map(readPage).join('\n');

  for (const file of readdirSync(join(ROOT, FOLDER))) {
    const program = PROGRAMS[file.split('.').at(-1)!];
    expect(commands).toContain(`${program} ${FOLDER}/${file}`);
  }
});
