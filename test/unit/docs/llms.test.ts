import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { readPage, ROOT } from '../../support/docs/pages.js';

const [start = '', ...sections] = readPage('llms.txt').split(/^## /m);
const items = sections.flatMap((section) => section.trim().split('\n').slice(2));
const paths = items.map((item) => /^- \[[^\]]+\]\(([^)#]+)\): \S/.exec(item)?.[1]);

test('llms.txt has the form of llmstxt.org: a title, a summary, and lists of links with notes', () => {
  expect(start).toMatch(/^# Sluice\n\n> .+\n\n/);
  expect(sections.length).toBeGreaterThan(0);
  expect(paths).not.toContain(undefined);
});

test('llms.txt names each page of docs once, and only files that exist', () => {
  expect(paths.filter((path) => !existsSync(join(ROOT, path!)))).toEqual([]);
  const listed = paths.filter((path) => path!.startsWith('docs/')).sort();
  const pages = readdirSync(join(ROOT, 'docs')).filter((name) => name.endsWith('.md'));
  expect(listed).toEqual(pages.map((name) => `docs/${name}`).sort());
});
