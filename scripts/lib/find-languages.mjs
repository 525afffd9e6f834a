import { spawnSync } from 'node:child_process';

import { findProgram } from './install-package.mjs';
import { skipping } from './skipping.mjs';

/**
 * `python3` and `go` for the examples in other languages and for the Go client. Without one its path is empty, and one
 * line says so. SLUICE_TEST_GO_RACE has the option for Go's race detector, or is empty without a C compiler, which the
 * detector needs.
 */
export function findLanguages() {
  const python = find('python3', 'the examples for python3');
  const go = find('go', 'the Go client and the examples for go');
  return { SLUICE_TEST_PYTHON: python, SLUICE_TEST_GO: go, SLUICE_TEST_GO_RACE: race(go) };
}

function find(program, tests) {
  const path = findProgram(program);
  if (path) return path;
  skipping(program, tests);
  return '';
}

/** Go says that it uses C if it finds a compiler. */
function race(go) {
  if (go === '') return '';
  const { stdout } = spawnSync(go, ['env', 'CGO_ENABLED'], { encoding: 'utf8' });
  if (stdout.trim() === '1') return '-race';
  skipping('C compiler', 'races in the Go client');
  return '';
}
