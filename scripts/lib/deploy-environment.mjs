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
// The tests build it, too; where that was done before, it takes them a moment only.
if (hasImages) spawnSync('docker', ['--host', host, 'build', '--quiet', ROOT], { stdio: 'ignore' });
const environment = {
  ...docker,
  ...(hasImages ? {} : { SLUICE_TEST_DOCKER_HOST: '' }),
  ...findDeployTools(),
  SLUICE_TEST_NGINX: findNginx(),
};
console.log(JSON.stringify(environment));
await once(process.stdin.resume(), 'end');
await endDocker();
process.exit();
