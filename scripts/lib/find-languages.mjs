import { findProgram } from './install-package.mjs';
import { skipping } from './skipping.mjs';

/** `python3` and `go` for the examples in other languages. Without one its path is empty, and one line says so. */
export function findLanguages() {
  return { SLUICE_TEST_PYTHON: find('python3'), SLUICE_TEST_GO: find('go') };
}

function find(program) {
  const path = findProgram(program);
  if (path) return path;
  skipping(program, `the examples for ${program}`);
  return '';
}
