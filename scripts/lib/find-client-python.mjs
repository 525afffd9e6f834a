import { findFromPypi } from './find-from-pypi.mjs';

const HTTPX = '0.28.1';
const PYTEST = '9.2.0';
const MYPY = '2.4.1';
/** It builds the package. */
const HATCHLING = '1.33.0';

const CLIENT = {
  name: 'client-python',
  version: [HTTPX, PYTEST, MYPY, HATCHLING].join('-'),
  packages: [`httpx==${HTTPX}`, `pytest==${PYTEST}`, `mypy==${MYPY}`, `hatchling==${HATCHLING}`],
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
