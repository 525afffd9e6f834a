import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import type { Program } from '../../support/client/command-line.js';
import { ROOT } from '../../support/docs/pages.js';
import { provided } from '../../support/provided.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';

const TESTS = '../../service/client/cli';

const python = provided('SLUICE_TEST_CLIENT_PYTHON');
const folder = useTemporaryFolder();

// `npm test` says if Python is missing.
if (python === '') {
  test.skip('the command line of the Python package passes the tests of the Node package', () =>
    undefined);
} else {
  const wheel = ['--no-build-isolation', '--no-deps', '--no-index', '--quiet', '--target', folder];
  execFileSync(python, ['-m', 'pip', 'install', ...wheel, join(ROOT, 'clients/python')]);
  const program: Program = {
    name: 'of Python',
    about: 'about',
    command: ['env', `PYTHONPATH=${folder}`, join(folder, 'bin/sluice-client')],
  };
  // Before the tests are loaded, which read it.
  process.env.SLUICE_TEST_COMMAND_LINE = JSON.stringify(program);
  for (const name of ['command-lines', 'commands', 'run', 'terminal']) {
    await import(`${TESTS}/${name}.test.js`);
  }
}
