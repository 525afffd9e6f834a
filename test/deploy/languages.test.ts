import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { readPage, ROOT } from '../support/docs/pages.js';
import { shellBlocks } from '../support/docs/shell-blocks.js';
import { useApp } from '../support/use-apps.js';

const run = promisify(execFile);
const PROGRAMS: Readonly<Record<string, string>> = {
  python3: process.env.SLUICE_TEST_PYTHON ?? '',
  go: process.env.SLUICE_TEST_GO ?? '',
};
/** Go compiles the program first. */
const LONGEST_MILLIS = 120_000;

const examples = shellBlocks('docs/without-a-client.md')
  .filter(({ notRun }) => notRun !== undefined)
  .map(({ code, prints }) => {
    const [, program = '', ...words] = code.trim().split(' ');
    return { program, words, prints };
  });

const app = useApp(() => ({ MAX_REQUESTS: '1', WINDOW_MILLIS: '60000' }));

test('each language with an example is run', () => {
  expect(examples.map(({ program }) => program)).toEqual(Object.keys(PROGRAMS));
  expect(readPage('docs/without-a-client.md')).toContain('```python\n');
});

describe.each(examples)('the example for $program', ({ program, words, prints }) => {
  const path = PROGRAMS[program]!;
  // `npm test` says which program is missing.
  const runIt = path === '' ? test.skip : test;

  runIt(
    'waits, works and releases',
    async () => {
      const env = { ...process.env, SLUICE_URL: app.url, GO111MODULE: 'off' };
      for (let times = 0; times < 2; times += 1) {
        // The second time finds room only if the first has released.
        const { stdout } = await run(path, words, { cwd: ROOT, env });
        expect(stdout.trimEnd()).toBe(prints);
      }
    },
    LONGEST_MILLIS,
  );
});
