import { spawnSync } from 'node:child_process';

import { provided } from '../support/provided.js';
import { ROOT } from './repository-files.js';

/**
 * `describe` for tests that need actionlint. Skipped if there is none, which
 * `scripts/lib/find-deploy-tools.mjs` announces.
 */
export function describeWithActionlint(title: string, tests: () => void): void {
  if (provided('SLUICE_TEST_ACTIONLINT') === '') describe.skip(title, tests);
  else describe(title, tests);
}

/** What actionlint finds wrong with these files; empty if nothing is wrong. */
export function actionlint(...files: readonly string[]): string {
  // Otherwise actionlint would use these two programs if the machine happens to have them.
  const args = ['-no-color', '-shellcheck=', '-pyflakes=', ...files];
  const { error, status, stdout, stderr } = spawnSync(provided('SLUICE_TEST_ACTIONLINT'), args, {
    cwd: ROOT,
    encoding: 'utf8',
  });
  if (error) throw error;
  // Code 1 means findings, a higher code a failure to check.
  if (status !== 0 && status !== 1) throw new Error(stderr);
  return stdout;
}
