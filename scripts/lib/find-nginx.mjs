import { spawnSync } from 'node:child_process';

import { commandToInstall, findOrInstall, findProgram } from './install-package.mjs';
import { skipping } from './skipping.mjs';

const PACKAGES = { apt: 'nginx-light', brew: 'nginx' };
/** The oldest version with which the tests are known to pass. */
const OLDEST = [1, 22];

/**
 * The `nginx` for the tests behind a load balancer and a gateway. Without a usable one the path is empty, and one line
 * says so.
 * @param options.get whether a missing one is installed
 */
export function findNginx({ get }) {
  const path = get ? findOrInstall('nginx', PACKAGES) : findProgram('nginx');
  if (path && isNewEnough(path)) return path;
  skipping(
    `nginx ${OLDEST.join('.')} or newer`,
    'rolling updates behind a load balancer, and nginx as a gateway',
    commandToInstall(PACKAGES),
  );
  return '';
}

function isNewEnough(path) {
  const { stderr } = spawnSync(path, ['-v'], { encoding: 'utf8' });
  const [, major, minor] = /nginx\/(\d+)\.(\d+)\./.exec(stderr ?? '')?.map(Number) ?? [];
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}
