// Gets the programs for the tests in test/deploy, and prints one line of JSON with environment variables for
// them. A Docker engine that it has started runs until its standard input ends.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';

import { baseImages } from './base-images.mjs';
import { findDeployTools } from './find-deploy-tools.mjs';
import { endDocker, findDocker } from './find-docker.mjs';
import { findNginx } from './find-nginx.mjs';
import { ROOT } from './run.mjs';
import { provideImages } from './stand-in-images.mjs';

const docker = await findDocker();
const host = docker.SLUICE_TEST_DOCKER_HOST;
const hasImages = host !== '' && provideImages(host, baseImages());
// The build of the image uses npm's registry, too, if another one is configured.
const registry = process.env.NPM_CONFIG_REGISTRY ?? process.env.npm_config_registry;
const npm = registry === undefined ? {} : { NPM_CONFIG_REGISTRY: registry };
if (hasImages) {
  // test/deploy/docker/build-image.ts builds the same, and then takes a moment only.
  const build = ['build', '--quiet', '--build-arg', 'NPM_CONFIG_REGISTRY', ROOT];
  const options = { stdio: 'ignore', env: { ...process.env, ...npm } };
  spawnSync('docker', ['--host', host, ...build], options);
}
const environment = {
  ...npm,
  ...docker,
  ...(hasImages ? {} : { SLUICE_TEST_DOCKER_HOST: '' }),
  ...findDeployTools(),
  SLUICE_TEST_NGINX: findNginx(),
};
console.log(JSON.stringify(environment));
await once(process.stdin.resume(), 'end');
await endDocker();
process.exit();
