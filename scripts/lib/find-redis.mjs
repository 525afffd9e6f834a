import { spawnSync } from 'node:child_process';

import { findOrInstall } from './install-package.mjs';
import { stop } from './run.mjs';

export const REDIS_IMAGE = process.env.SLUICE_TEST_REDIS_IMAGE || 'redis:7.2-alpine';
const PULL_TIMEOUT_MILLIS = 120_000;

/**
 * Finds a Redis for the tests, and returns environment variables for them. It is a container if a Docker
 * daemon has or can pull the image, else a `redis-server` on PATH, else one installed by the system's package
 * manager. Tests that send signals to servers or combine several always need the program, which
 * SLUICE_TEST_REDIS_PROGRAM names. It is empty without a usable one.
 */
export async function findRedis() {
  const container = await fromDocker();
  const server = process.env.SLUICE_TEST_REDIS_PROGRAM || findOrInstallServer();
  if (!container && !server) {
    return stop(
      'The tests need a real Redis: start Docker, or put redis-server on PATH, ' +
        'or run them where it can be installed (as root with apt-get, or with brew).',
    );
  }
  const program = server && majorVersion(server) >= 7 ? server : '';
  if (!program) {
    console.error(
      'no redis-server 7 or newer on PATH: skipping the tests of Redis Cluster, Sentinel, TLS and faults',
    );
  }
  return {
    ...(container ?? { SLUICE_TEST_REDIS_SERVER: server }),
    SLUICE_TEST_REDIS_PROGRAM: program,
  };
}

/** A `redis-server` of this machine, installed where there is none. */
export function findRedisServer() {
  return findOrInstallServer() ?? stop('No redis-server is there: put it on PATH.');
}

function findOrInstallServer() {
  return findOrInstall('redis-server', { apt: 'redis-server', brew: 'redis' });
}

async function fromDocker() {
  const { getContainerRuntimeClient, getReaper, ImageName } = await import('testcontainers');
  let client;
  try {
    client = await getContainerRuntimeClient();
  } catch {
    return undefined; // No daemon answers.
  }
  if (!(await hasImage(client, ImageName.fromString(REDIS_IMAGE)))) return undefined;
  const found = { SLUICE_TEST_REDIS_IMAGE: REDIS_IMAGE };
  try {
    await getReaper(client);
  } catch {
    // Ryuk would remove the containers of a killed run. Without its image nothing removes them.
    found.TESTCONTAINERS_RYUK_DISABLED = 'true';
  }
  return found;
}

async function hasImage(client, image) {
  if (await client.image.exists(image)) return true;
  console.error(`pulling ${image.string} ...`);
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
