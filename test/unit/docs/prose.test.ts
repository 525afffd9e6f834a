import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { ROOT } from '../../support/docs/pages.js';

const folder = useTemporaryFolder();

/** Files with a word that has another in scripts/prose/words.yml, where each pattern has its own examples. */
const FILES = {
  'client.go': '// Begins anew.\nvar anew = errors.New("begins it anew")\n',
  'code.ts': '/** Begins\n * anew, by `anew`. */\nconst anew = "anew";\nfail("begins it anew");',
  'gateway.conf': '# Begins anew.\nanew on;\n',
  'good.md': 'It begins again.\n',
  'page.js': 'const anew = /anew/; // Begins anew.\nfail(`begins it anew after ${anew} ms`);',
  'page.md': 'Begins anew.\n\n`anew`\n\n```sh\nanew\n```\n\n- begins\n  anew\n',
  'script.lua': "local anew = 'anew' -- begins anew\nerror('begins it anew')\n",
  'values.yaml': '# Begins anew.\ntitle: Begins anew\n',
};

const TITLES = [
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

const PHRASES = ['@returns what', 'so many', 'whom', 'that of', 'of those'].flatMap((phrase) => [
  phrase,
  phrase.toUpperCase(),
]);

/** The findings in all these files, each with its place. */
let findings: string[];
beforeAll(() => {
  const own = mkdtempSync(join(folder, 'prose-'));
  const phrases = PHRASES.map((phrase) => `/** ${phrase} it says, also to most of. */`);
  const files = { ...FILES, 'titles.ts': TITLES.join('\n'), 'phrases.ts': phrases.join('\n') };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(own, name), text);
  const { status, stderr } = spawnSync('node', ['scripts/lint-prose.mjs', own], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  findings = stderr.replaceAll(`${own}/`, '').trim().split('\n').sort();
});

function findingsIn(...files: readonly string[]): string[] {
  return findings.filter((finding) => files.some((file) => finding.startsWith(`${file}:`)));
}

test('the prose linter finds a word in prose, at its place, and not in code', () => {
  expect(findingsIn(...Object.keys(FILES))).toEqual([
    'client.go:1:11 anew => again',
    'client.go:2:34 anew => again',
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
  expect(findingsIn('titles.ts').map(withoutReason)).toEqual([
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
  expect(findingsIn('phrases.ts').map(withoutReason)).toEqual(
    PHRASES.map((phrase, i) => `phrases.ts:${i + 1}:5 ${phrase}`).sort(),
  );
});

function withoutReason(finding: string): string {
  return finding.split(' => ')[0]!;
}
