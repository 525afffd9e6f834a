import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { findProgram } from './install-package.mjs';
import { ROOT } from './run.mjs';
import { GET_ALL, skipping } from './skipping.mjs';

const INSTALLED = join(ROOT, 'node_modules', '.cache', 'sluice');
const INSTALL_TIMEOUT_MILLIS = 10 * 60 * 1000;
/** This file is written last, so that an incomplete environment is not used. */
const STAMP = '.installed';
/** The last lines have the error. */
const REASON_LINES = 5;

/**
 * The path of a program that comes from PyPI, in an environment of its own. Without one the path is empty, and one line
 * says so.
 * @param tool.name its name in that line
 * @param tool.version is part of the environment's name, so that a new version installs the tool again
 * @param tool.packages the names of its packages, of this version unless they have one, as in `httpx==0.28.1`
 * @param tool.program the program's name in the environment
 * @param tool.tests the tests that are skipped without it
 * @param options.get whether a missing one is installed, into a folder of node_modules
 */
export function findFromPypi(tool, { get }) {
  const { name, version, program, tests } = tool;
  const folder = join(INSTALLED, `${name}-${version}`);
  const path = join(folder, 'bin', program);
  if (existsSync(join(folder, STAMP))) return path;
  const python = findProgram('python3');
  if (get && python && install(python, folder, tool)) return path;
  const missing = python ? `${name} ${version}` : `Python, and so no ${name} ${version}`;
  skipping(missing, tests, python && GET_ALL);
  return '';
}

function install(python, folder, { name, version, packages }) {
  console.error(`no ${name} found; installing ${version} from PyPI, which can take minutes ...`);
  const pinned = packages.map((one) => (one.includes('==') ? one : `${one}==${version}`));
  const commands = [
    [python, '-m', 'venv', folder],
    [join(folder, 'bin', 'pip'), 'install', '--quiet', '--no-input', ...pinned],
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
    rmSync(folder, { recursive: true, force: true });
    return false;
  }
  writeFileSync(join(folder, STAMP), '');
  return true;
}
