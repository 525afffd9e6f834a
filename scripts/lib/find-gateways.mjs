import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { commandToInstall, findOrInstall, findProgram, install } from './install-package.mjs';
import { skipping } from './skipping.mjs';

const HAPROXY = { apt: 'haproxy', brew: 'haproxy' };
const CADDY = { apt: 'caddy', brew: 'caddy' };
const NJS = { apt: 'libnginx-mod-http-js' };

/**
 * Finds the programs for the tests of the files in deploy/gateways, beside nginx. Returns environment variables for
 * the tests: SLUICE_TEST_HAPROXY, SLUICE_TEST_CADDY and SLUICE_TEST_TRAEFIK are the programs' paths, SLUICE_TEST_NJS is
 * that of nginx's module njs. The variable of one that is missing is empty, and a line says so.
 * @param nginx the path of nginx, or empty
 * @param options.get whether a missing one is installed
 */
export function findGateways(nginx, { get }) {
  return {
    SLUICE_TEST_HAPROXY: findOne('haproxy', HAPROXY, { get }),
    SLUICE_TEST_CADDY: findOne('caddy', CADDY, { get }),
    SLUICE_TEST_TRAEFIK: findTraefik(),
    SLUICE_TEST_NJS: nginx && findNjs(nginx, { get }),
  };
}

function findOne(program, packages, { get }) {
  const path = get ? findOrInstall(program, packages) : findProgram(program);
  if (!path) skipping(program, `${program} as a gateway`, commandToInstall(packages));
  return path ?? '';
}

/** Neither Debian nor Go's proxy has one to build, so it is never got. */
function findTraefik() {
  const path = process.env.SLUICE_TEST_TRAEFIK || findProgram('traefik');
  if (!path) skipping('traefik 3 (SLUICE_TEST_TRAEFIK may name one)', 'Traefik as a gateway');
  return path ?? '';
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
