import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { USAGE } from '../../../src/app/command-line.js';
import { packageVersion } from '../../../src/common/package-version.js';
import { settingsSchema } from '../../../src/config/settings.js';

const ENTRY = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));

/** The settings are invalid: a command line must not need valid ones. */
function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const env = { MAX_REQUESTS: 'many' };
  return spawnSync(process.execPath, [ENTRY, ...args], { env, encoding: 'utf8' });
}

test('--help prints the usage, and each setting with its default', () => {
  const { status, stdout, stderr } = run('--help');
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toContain(USAGE);
  expect(stdout).toContain('docs/configuration.md');
  const names = [...stdout.matchAll(/^ {2}([A-Z\d_]+) +\S+$/gm)].map(([, name]) => name);
  expect(names).toEqual(Object.keys(settingsSchema.shape));
  expect(stdout).toMatch(/^ {2}MAX_REQUESTS +100$/m);
});

test('--version prints the version', () => {
  expect(run('--version')).toMatchObject({
    status: 0,
    stdout: `${packageVersion()}\n`,
    stderr: '',
  });
});

test('an unknown option ends with code 1, and prints what is wrong and the usage', () => {
  expect(run('--max-requests', '5')).toMatchObject({
    status: 1,
    stdout: '',
    stderr: `unknown option --max-requests\n\n${USAGE}\n`,
  });
});
