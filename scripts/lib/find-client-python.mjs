import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { findFromPypi } from './find-from-pypi.mjs';
import { ROOT } from './run.mjs';

/** One package a line, with its version. */
const requirements = readFileSync(join(ROOT, 'clients/python/tests/requirements.txt'), 'utf8');

const CLIENT = {
  name: 'client-python',
  version: createHash('sha256').update(requirements).digest('hex').slice(0, 12),
  packages: requirements.split('\n').filter((line) => line.includes('==')),
  program: 'python3',
  tests: 'the Python client',
};

/**
 * A Python with the packages that the Python client and its tests need. Without one the path is empty, and one line
 * says so.
 * @param options.get whether missing packages are installed from PyPI, into a folder of node_modules
 */
export function findClientPython({ get }) {
  return findFromPypi(CLIENT, { get });
}
