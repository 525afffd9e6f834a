import { spawnSync } from 'node:child_process';

import { baseImages } from './base-images.mjs';
import { findOrInstall, findProgram } from './install-package.mjs';
import { startOwnDocker } from './own-docker.mjs';
import { GET_ALL, skipping } from './skipping.mjs';
import { hasImages, provideImages } from './stand-in-images.mjs';

/** The image that the tests build, with a name that differs from a user's own image. */
const IMAGE = 'sluice-test/sluice:local';

/**
 * Finds a Docker engine for the tests of the image and the composition: the one that runs, if it has the
 * base images. Returns `environment`, the variables for the tests: SLUICE_TEST_DOCKER_HOST is the engine's
 * address, and SLUICE_TEST_COMPOSE a JSON list of the words that begin a command of Compose; both are empty
 * without an engine. The names of images are in the variables of docker-compose.yml. `enter` has the words
 * before a command that is to reach the containers.
 * @param options.get whether missing images are pulled, and an engine of our own is started if that fails
 */
export async function findDocker({ get }) {
  const images = baseImages();
  const running = runningEngine();
  if (running && hasImages(running, images, { pull: get })) {
    console.error(
      'The tests build the image in your Docker engine, and remove it after them. Layers may stay: ' +
        '`docker builder prune` and `docker image prune` remove them.',
    );
    return foundAt(running, { get });
  }
  const own = get ? await startOwnDocker() : undefined;
  const standIns = own && provideImages(own.host, images);
  if (standIns) return foundAt(own.host, { get, enter: own.enter, standIns });
  const names = images.map(({ image }) => image).join(', ');
  return notFound(running ? `Docker engine with ${names}` : 'running Docker engine', { get });
}

/** Removes the image that the tests have built in an engine, if there is one. */
export function removeBuiltImage(host) {
  spawnSync('docker', ['--host', host, 'image', 'rm', '--force', IMAGE], { stdio: 'ignore' });
}

function foundAt(host, { get, enter = [], standIns = {} }) {
  const compose = findCompose({ get });
  if (!compose) return notFound('Docker Compose', { get });
  const environment = {
    SLUICE_TEST_DOCKER_HOST: host,
    SLUICE_TEST_COMPOSE: JSON.stringify(compose),
    SLUICE_IMAGE: IMAGE,
    ...standIns,
  };
  return { environment, enter };
}

function notFound(missing, { get }) {
  const tests = 'the image and the composition';
  if (get) console.error(`no ${missing} can be had: skipping the tests of ${tests}`);
  else skipping(missing, tests, GET_ALL);
  return { environment: { SLUICE_TEST_DOCKER_HOST: '', SLUICE_TEST_COMPOSE: '[]' }, enter: [] };
}

function runningEngine() {
  if (!findProgram('docker')) return undefined;
  const inspect = ['context', 'inspect', '-f', '{{.Endpoints.docker.Host}}'];
  const { status, stdout } = spawnSync('docker', inspect, { encoding: 'utf8' });
  const host = process.env.DOCKER_HOST || (status === 0 ? stdout.trim() : '');
  return host && answers(host) ? host : undefined;
}

function answers(host) {
  return spawnSync('docker', ['--host', host, 'version'], { stdio: 'ignore' }).status === 0;
}

function findCompose({ get }) {
  if (spawnSync('docker', ['compose', 'version'], { stdio: 'ignore' }).status === 0) {
    return ['docker', 'compose'];
  }
  const find = get ? findOrInstall : findProgram;
  const compose = find('docker-compose', { apt: 'docker-compose' });
  return compose && [compose];
}
