import { findFromPypi } from './find-from-pypi.mjs';

const OPENAPI_PYTHON = {
  name: 'openapi-python-client',
  version: '0.29.1',
  packages: ['openapi-python-client'],
  program: 'python3',
  tests: 'a generated client in Python',
};

/**
 * A Python with openapi-python-client, which generates a client from the OpenAPI document, and with the packages that
 * the client needs. Without one the path is empty, and one line says so.
 * @param options.get whether a missing one is installed from PyPI, into a folder of node_modules
 */
export function findOpenApiPython({ get }) {
  return findFromPypi(OPENAPI_PYTHON, { get });
}
