// Finds the programs for the tests in test/deploy. With `--get` it installs missing programs, and
// with `--long` also those that only the tests in folders `long` need. Prints one line of
// JSON: `environment` has the variables for the tests, and `enter` the words before the command that runs them.
// A Docker engine that it has started runs until its standard input ends.
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';

import { BUILD_ARGUMENTS } from './base-images.mjs';
import { findChromium } from './find-chromium.mjs';
import { findClientPython } from './find-client-python.mjs';
import { findDeployTools } from './find-deploy-tools.mjs';
import { findEgctl } from './find-egctl.mjs';
import { findDocker, removeBuiltImage } from './find-docker.mjs';
import { findGateways } from './find-gateways.mjs';
import { findEnvoyRatelimit } from './find-envoy-ratelimit.mjs';
import { findGocc } from './find-gocc.mjs';
import { findGrpcPython } from './find-grpc-python.mjs';
import { findLanguages } from './find-languages.mjs';
import { findNginx } from './find-nginx.mjs';
import { findOpenApiPython } from './find-openapi-python.mjs';
import { findPrometheus } from './find-prometheus.mjs';
import { findSchemathesis } from './find-schemathesis.mjs';
import { endOwnDocker } from './own-docker.mjs';
import { ROOT } from './run.mjs';

const get = process.argv.includes('--get');
/** Looks for what only the tests in folders `long` need. It is got for these alone. */
const ifLong = (find) => (get && !process.argv.includes('--long') ? '' : find({ get }));
const { environment: docker, enter } = await findDocker({ get });
const host = docker.SLUICE_TEST_DOCKER_HOST;
// The build of the image also uses npm's registry if another one is configured.
const registry = process.env.NPM_CONFIG_REGISTRY ?? process.env.npm_config_registry;
const npm = registry === undefined ? {} : { NPM_CONFIG_REGISTRY: registry };
if (host !== '') {
  // test/deploy/docker/build-image.ts builds the same image again, which takes only a moment.
  const build = ['build', '--quiet', ...BUILD_ARGUMENTS, '--tag', docker.SLUICE_IMAGE, ROOT];
  const options = { stdio: 'ignore', env: { ...process.env, ...npm, ...docker } };
  spawnSync('docker', ['--host', host, ...build], options);
}
const nginx = findNginx({ get });
const environment = {
  ...npm,
  ...docker,
  ...findDeployTools({ get }),
  SLUICE_TEST_NGINX: nginx,
  SLUICE_TEST_SCHEMATHESIS: ifLong(findSchemathesis),
  SLUICE_TEST_GOCC: process.env.SLUICE_TEST_GOCC || ifLong(findGocc),
  SLUICE_TEST_ENVOY_RATELIMIT: ifLong(findEnvoyRatelimit),
  SLUICE_TEST_EGCTL: ifLong(findEgctl),
  SLUICE_TEST_GRPC_PYTHON: findGrpcPython({ get }),
  SLUICE_TEST_OPENAPI_PYTHON: ifLong(findOpenApiPython),
  SLUICE_TEST_CLIENT_PYTHON: findClientPython({ get }),
  ...findGateways(nginx, { get }),
  ...findLanguages(),
  ...findPrometheus({ get }),
  SLUICE_TEST_CHROMIUM: findChromium({ get }),
};
console.log(JSON.stringify({ environment, enter }));
await once(process.stdin.resume(), 'end');
if (host !== '') removeBuiltImage(host);
const left = await endOwnDocker();
for (const line of left) console.error(`The Docker engine of the tests has left this: ${line}`);
process.exit(left.length === 0 ? 0 : 1);
