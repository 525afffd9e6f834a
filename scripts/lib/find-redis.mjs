import { spawnSync } from 'node:child_process';

import { baseImage } from './base-images.mjs';
import { canInstall, commandToInstall, findOrInstall, findProgram } from './install-package.mjs';
import { stop } from './run.mjs';
import { skipping } from './skipping.mjs';

export const REDIS_IMAGE = process.env.SLUICE_TEST_REDIS_IMAGE || baseImage('REDIS_IMAGE');
const PULL_TIMEOUT_MILLIS = 120_000;

const PACKAGES = { apt: 'redis-server', brew: 'redis' };

/**
 * Finds a Redis for the tests, and returns environment variables for them. It is a `redis-server` on PATH, else
 * a container of a Docker engine that runs, which pulls missing images, else a `redis-server` that is installed.
 * Tests that send signals to servers or combine several always need the program, which
 * SLUICE_TEST_REDIS_PROGRAM names. It is empty without a usable one.
 * @param options.get whether a missing program is installed before a container is considered
 */
export async function findRedis({ get }) {
  let server = process.env.SLUICE_TEST_REDIS_PROGRAM || findProgram('redis-server');
  if (!server && get) server = installServer();
  const container = server ? undefined : await fromDocker();
  if (!server && !container) server = installServer();
  if (!server && !container) {
    return stop(
      'The tests need a real Redis: put redis-server on PATH, or start Docker, ' +
        'or run them where it can be installed (as root with apt-get, or with brew).',
    );
  }
  const program = server && majorVersion(server) >= 7 ? server : '';
  if (!program) {
    skipping(
      'redis-server 7 or newer',
      'Redis Cluster, Sentinel, TLS and faults',
      commandToInstall(PACKAGES),
    );
  }
  return {
    ...(container ?? { SLUICE_TEST_REDIS_SERVER: server }),
    SLUICE_TEST_REDIS_PROGRAM: program,
  };
}

/** A `redis-server` of this machine, installed if there is none. */
export function findRedisServer() {
  return (
    findProgram('redis-server') ??
    installServer() ??
    stop('No redis-server is there: put it on PATH.')
  );
}

function installServer() {
  if (!canInstall(PACKAGES)) return undefined;
  console.error(
    'A Redis is missing, so one is installed. To avoid that, put a redis-server on PATH.',
  );
  return findOrInstall('redis-server', PACKAGES);
}

async function fromDocker() {
  const { getContainerRuntimeClient, getReaper, ImageName } = await import('testcontainers');
  const { REAPER_IMAGE } = await import('testcontainers/build/reaper/reaper.js');
  let client;
  try {
    client = await getContainerRuntimeClient();
  } catch {
    return undefined; // No Docker daemon answers.
  }
  if (!(await hasImage(client, ImageName.fromString(REDIS_IMAGE)))) return undefined;
  const found = { SLUICE_TEST_REDIS_IMAGE: REDIS_IMAGE };
  try {
    await hasImage(client, ImageName.fromString(REAPER_IMAGE));
    await getReaper(client);
  } catch {
    // Ryuk would remove the containers of a killed run. Without its image nothing removes them.
    found.TESTCONTAINERS_RYUK_DISABLED = 'true';
  }
  return found;
}

async function hasImage(client, image) {
  if (await client.image.exists(image)) return true;
  console.error(
    `Docker pulls ${image.string}, for the tests' Redis. To avoid that, put a redis-server on PATH.`,
  );
  try {
    await Promise.race([
      client.image.pull(image),
      new Promise((_, reject) => {
        setTimeout(() => reject(new Error('timed out')), PULL_TIMEOUT_MILLIS).unref();
      }),
    ]);
    return true;
  } catch (error) {
    console.error(`can't pull ${image.string}: ${error.message}`);
    return false;
  }
}

function majorVersion(path) {
  const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  return Number(/ v=(\d+)\./.exec(stdout ?? '')?.[1]);
}
