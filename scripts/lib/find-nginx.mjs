import { spawnSync } from 'node:child_process';

import { findOrInstall } from './install-package.mjs';

/** The oldest version with which the tests are known to pass. */
const OLDEST = [1, 22];

/**
 * The `nginx` for the tests behind a load balancer: this machine's, or one installed by the system's package
 * manager. Without a usable nginx the path is empty, and one line says so.
 */
export function findNginx() {
  const path = findOrInstall('nginx', { apt: 'nginx-light', brew: 'nginx' });
  if (path && isNewEnough(path)) return path;
  console.error(
    `no nginx ${OLDEST.join('.')} or newer on PATH: skipping the tests behind a load balancer`,
  );
  return '';
}

function isNewEnough(path) {
  const { stderr } = spawnSync(path, ['-v'], { encoding: 'utf8' });
  const [, major, minor] = /nginx\/(\d+)\.(\d+)\./.exec(stderr ?? '')?.map(Number) ?? [];
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}
