import { join } from 'node:path';

import { findProgram } from './install-package.mjs';
import { ROOT, run } from './run.mjs';
import { skipping } from './skipping.mjs';

const BUILT = join(ROOT, 'node_modules/.cache/sluice-client');

/** Builds the command line in Go for its tests. SLUICE_TEST_GO_COMMAND_LINE has its path; it is empty without Go. */
export function goCommandLine() {
  const go = findProgram('go');
  if (go) run(go, ['build', '-o', BUILT, './cmd/sluice-client'], { cwd: join(ROOT, 'clients/go') });
  else skipping('go', 'the command line in Go');
  return { SLUICE_TEST_GO_COMMAND_LINE: go ? BUILT : '' };
}
