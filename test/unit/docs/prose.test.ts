import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { ROOT } from '../../support/docs/pages.js';

const folder = useTemporaryFolder();

/** The findings in these files, each with its place. */
function findingsIn(files: Readonly<Record<string, string>>): string[] {
  const own = mkdtempSync(join(folder, 'prose-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(own, name), text);
  const { status, stderr } = spawnSync('node', ['scripts/lint-prose.mjs', own], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  return stderr.replaceAll(`${own}/`, '').trim().split('\n').sort();
}

// The patterns have their own examples in scripts/prose/words.yml.
test('the prose linter finds a word in prose, at its place, and not in code', () => {
  const found = findingsIn({
    'code.ts': '/** Begins\n * anew, by `anew`. */\nconst anew = "anew";\nfail("begins it anew");',
    'gateway.conf': '# Begins anew.\nanew on;\n',
    'good.md': 'It begins again.\n',
    'page.js': 'const anew = /anew/; // Begins anew.\nfail(`begins it anew after ${anew} ms`);',
    'page.md': 'Begins anew.\n\n`anew`\n\n```sh\nanew\n```\n\n- begins\n  anew\n',
    'script.lua': "local anew = 'anew' -- begins anew\nerror('begins it anew')\n",
    'values.yaml': '# Begins anew.\ntitle: Begins anew\n',
  });

  expect(found).toEqual([
    'code.ts:2:4 anew => again',
    'code.ts:4:17 anew => again',
    'gateway.conf:1:10 anew => again',
    'page.js:1:32 anew => again',
    'page.js:2:17 anew => again',
    'page.md:10:3 anew => again',
    'page.md:1:8 anew => again',
    'script.lua:1:31 anew => again',
    'script.lua:2:18 anew => again',
    'values.yaml:1:10 anew => again',
    'values.yaml:2:15 anew => again',
  ]);
});

test('the prose linter reads each test title as a sentence, however short, and no other short text', () => {
  const lines = [
    "describe('begins anew', () => {});",
    "it('anew', () => {});",
    'test.skip("begins anew", () => {});',
    "test.each([{ n: 1 }])(\n  'begins anew',\n  () => {},\n);",
    "test.each`\n  n\n  ${1}\n`('begins anew', () => {});",
    "testWithPython('begins anew', () => {});",
    'test(`a ${`b ${1}`} c ${{ d: 1 }.d} anew`, () => {});',
    "test('counts, too', () => {});",
    "test('whose turn', () => {});",
    "begin('anew', /x/.test('anew'));",
    'begin(`anew ${1}`);',
  ];

  expect(findingsIn({ 'titles.ts': lines.join('\n') }).map(withoutReason)).toEqual([
    'titles.ts:11:11 anew',
    'titles.ts:12:24 anew',
    'titles.ts:13:37 anew',
    'titles.ts:14:13 , too',
    'titles.ts:15:7 Whose',
    'titles.ts:1:18 anew',
    'titles.ts:2:5 Anew',
    'titles.ts:3:19 anew',
    'titles.ts:5:11 anew',
  ]);
});

test('the prose linter finds each phrase whose noun is missing, in any case', () => {
  const phrases = ['@returns what', 'so many', 'whom', 'that of', 'of those'];
  const cased = phrases.map((phrase) => phrase.toUpperCase());
  const lines = [...phrases, ...cased].map(
    (phrase) => `/** ${phrase} it says, also to most of. */`,
  );

  expect(findingsIn({ 'phrases.ts': lines.join('\n') }).map(withoutReason)).toEqual(
    [...phrases, ...cased].map((phrase, i) => `phrases.ts:${i + 1}:5 ${phrase}`).sort(),
  );
});

function withoutReason(finding: string): string {
  return finding.split(' => ')[0]!;
}
