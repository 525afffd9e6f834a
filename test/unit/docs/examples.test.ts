import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { pages, readPage, ROOT } from '../../support/docs/pages.js';

const FOLDERS = ['clients/node/examples', 'docs/examples'];
const FENCE = /^```(?:js|python|go|bash)\n([\s\S]*?)^```$/gm;
const PROGRAMS: Readonly<Record<string, string>> = {
  mjs: 'node',
  py: 'python3',
  go: 'go run',
  sh: 'sh',
};

const paths = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder)).map((file) => `${folder}/${file}`),
);

/** test/deploy/python-client.test.ts and go-client.test.ts run the examples of these pages. */
const OF_THEIR_OWN_TESTS = ['clients/python/README.md', 'clients/go/README.md'];

test('each example is on one page, and no page has other examples', () => {
  const shown = pages()
    .filter((page) => !OF_THEIR_OWN_TESTS.includes(page))
    .flatMap((page) => [...readPage(page).matchAll(FENCE)].map(([, code]) => code));
  const examples = paths.map((path) => readFileSync(join(ROOT, path), 'utf8'));
  expect(examples.length).toBeGreaterThan(0);
  expect([...shown].sort()).toEqual([...examples].sort());
});

test('a page has the command that runs each example', () => {
  const commands = pages().map(readPage).join('\n');

  for (const path of paths) {
    const program = PROGRAMS[path.split('.').at(-1)!];
    expect(commands).toContain(`${program} ${path}`);
  }
});
