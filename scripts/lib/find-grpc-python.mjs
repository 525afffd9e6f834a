import { findFromPypi } from './find-from-pypi.mjs';

const GRPC = {
  name: 'grpcio',
  version: '1.85.1',
  packages: ['grpcio', 'grpcio-reflection', 'grpcio-health-checking'],
  program: 'python3',
  tests: 'gRPC with a client in Python',
};

/**
 * A Python with gRPC and its packages for reflection and health. Without one the path is empty, and one line says so.
 * @param options.get whether missing packages are installed from PyPI, into a folder of node_modules
 */
export function findGrpcPython({ get }) {
  return findFromPypi(GRPC, { get });
}
