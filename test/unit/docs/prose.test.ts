import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { ROOT } from '../../support/docs/pages.js';

const folder = useTemporaryFolder();

// The patterns have their own examples in scripts/prose/words.yml.
test('the prose linter finds a word in prose, at its place, and not in code', () => {
  const files = {
    'code.ts': '/** Begins\n * anew, by `anew`. */\nconst anew = "anew";\nfail("begins it anew");',
    'gateway.conf': '# Begins anew.\nanew on;\n',
    'good.md': 'It begins again.\n',
    'page.js': 'const anew = /anew/; // Begins anew.\nfail(`begins it anew after ${anew} ms`);',
    'page.md': 'Begins anew.\n\n`anew`\n\n```sh\nanew\n```\n\n- begins\n  anew\n',
    'script.lua': "local anew = 'anew' -- begins anew\nerror('begins it anew')\n",
    'values.yaml': '# Begins anew.\ntitle: Begins anew\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);

  const { status, stderr } = spawnSync('node', ['scripts/lint-prose.mjs', folder], {
    cwd: ROOT,
    encoding: 'utf8',
  });

  expect(status).toBe(1);
  expect(stderr.replaceAll(`${folder}/`, '').trim().split('\n').sort()).toEqual([
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
