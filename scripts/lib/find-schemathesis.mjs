import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { findProgram } from './install-package.mjs';
import { ROOT } from './run.mjs';
import { GET_ALL, skipping } from './skipping.mjs';

const VERSION = '4.32.5';
/** The version is in its name, so that a change of it here installs it again. */
const FOLDER = join(ROOT, 'node_modules', '.cache', 'sluice', `schemathesis-${VERSION}`);
const PROGRAM = join(FOLDER, 'bin', 'schemathesis');
const INSTALL_TIMEOUT_MILLIS = 10 * 60 * 1000;
/** The last lines have the error. */
const REASON_LINES = 5;

/**
 * The `schemathesis` that asks the service what its OpenAPI document promises. Without one the path is empty, and one
 * line says so.
 * @param options.get whether a missing one is installed from PyPI, into a folder of node_modules
 */
export function findSchemathesis({ get }) {
  if (existsSync(PROGRAM)) return PROGRAM;
  const python = findProgram('python3');
  if (get && python && install(python)) return PROGRAM;
  const missing = python ? `schemathesis ${VERSION}` : `Python, and so no schemathesis ${VERSION}`;
  skipping(missing, 'the OpenAPI document against a service', python && GET_ALL);
  return '';
}

function install(python) {
  console.error(
    `no schemathesis found; installing ${VERSION} from PyPI, which can take minutes ...`,
  );
  const commands = [
    [python, '-m', 'venv', FOLDER],
    [join(FOLDER, 'bin', 'pip'), 'install', '--quiet', '--no-input', `schemathesis==${VERSION}`],
  ];
  for (const [program, ...args] of commands) {
    const { status, error, stdout, stderr } = spawnSync(program, args, {
      encoding: 'utf8',
      env: { ...process.env, PIP_DISABLE_PIP_VERSION_CHECK: '1' },
      timeout: INSTALL_TIMEOUT_MILLIS,
    });
    if (status === 0) continue;
    if (error) console.error(error.message);
    const lines = `${stdout ?? ''}${stderr ?? ''}`.trimEnd().split('\n');
    console.error(lines.slice(-REASON_LINES).join('\n'));
    rmSync(FOLDER, { recursive: true, force: true });
    return false;
  }
  return true;
}
