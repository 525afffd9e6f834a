import { findFromPypi } from './find-from-pypi.mjs';

const SCHEMATHESIS = {
  name: 'schemathesis',
  version: '4.32.5',
  packages: ['schemathesis'],
  program: 'schemathesis',
  tests: 'the OpenAPI document against a service',
};

/**
 * The `schemathesis` that tests the service against its OpenAPI document. Without one the path is empty, and one line
 * says so.
 * @param options.get whether a missing one is installed from PyPI, into a folder of node_modules
 */
export function findSchemathesis({ get }) {
  return findFromPypi(SCHEMATHESIS, { get });
}
