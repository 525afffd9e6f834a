import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { installWithNpm } from './npm.mjs';
import { ROOT } from './run.mjs';
import { GET_ALL, skipping } from './skipping.mjs';

/** The first version that the client's `engines` allow. */
const VERSION = '20.0.0';
const INSTALLED = join(ROOT, 'node_modules', '.cache', 'sluice', `node-${VERSION}`);

/**
 * The path of the oldest Node that the client supports. Without one the path is empty, and one line says so.
 * @param options.get whether a missing one is installed from npm, into a folder of node_modules
 */
export function findOldestNode({ get }) {
  if (process.version === `v${VERSION}`) return process.execPath;
  // The package `node` would choose this one, by a script.
  const name = `node-${process.platform}-${process.arch}`;
  const path = join(INSTALLED, 'node_modules', name, 'bin', 'node');
  if (existsSync(path) || (get && install(`${name}@${VERSION}`))) return path;
  skipping(`Node ${VERSION}`, 'the Node client on it', GET_ALL);
  return '';
}

function install(one) {
  console.error(`no ${one} found; installing it from npm ...`);
  const options = ['--no-save', '--no-package-lock', '--no-audit', '--no-fund', '--ignore-scripts'];
  const words = ['install', '--prefix', INSTALLED, ...options, one];
  const { status, stderr } = installWithNpm(words, { encoding: 'utf8' });
  if (status !== 0) console.error(stderr);
  return status === 0;
}
