// Gets what the tests in test/deploy need, says where it is as one line of JSON with environment variables,
// and keeps the Docker engine, where it has started one, until its standard input ends.
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
// Another registry that npm was told of goes for the build of the image, too.
const registry = process.env.NPM_CONFIG_REGISTRY ?? process.env.npm_config_registry;
const npm = registry === undefined ? {} : { NPM_CONFIG_REGISTRY: registry };
if (hasImages) {
  // As test/deploy/docker/build-image.ts does it, which then takes a moment only.
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
