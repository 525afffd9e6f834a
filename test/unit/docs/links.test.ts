import { existsSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { pages, readPage, ROOT } from '../../support/docs/pages.js';

const LINK = /\[[^\]]*\]\(([^)\s]+)\)/g;
const FENCE = /^(```|~~~)[\s\S]*?^\1/gm;

/** The anchors of a page, as GitHub makes them from its headings. */
function anchorsOf(page: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, title = ''] of readPage(page)
    .replaceAll(FENCE, '')
    .matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** What is wrong with a link of a page to another file or place, or undefined. */
function problemOf(page: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
  if (file.startsWith('..')) return `${target}: is outside of the project`;
  if (!existsSync(join(ROOT, file))) return `${target}: there is no ${file}`;
  if (anchor === undefined) return undefined;
  if (statSync(join(ROOT, file)).isDirectory()) return `${target}: a folder has no anchors`;
  return anchorsOf(file).has(anchor) ? undefined : `${target}: ${file} has no such heading`;
}

function brokenLinks(page: string): string[] {
  const text = readPage(page).replaceAll(FENCE, '');
  return [...text.matchAll(LINK)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => problemOf(page, target))
    .filter((problem) => problem !== undefined);
}

test.each(pages())('the links of %s have targets', (page) => {
  expect(brokenLinks(page)).toEqual([]);
});

test('a link to a missing file or heading, or to a path outside the project, is found', () => {
  expect(problemOf('README.md', 'docs/none.md')).toContain('there is no');
  expect(problemOf('docs/api.md', '../README.md#no-such-heading')).toContain('no such heading');
  expect(problemOf('docs/api.md', '../../README.md')).toContain('outside');
  expect(problemOf('docs/api.md', '../README.md#compared-with-others')).toBeUndefined();
});
