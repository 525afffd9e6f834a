import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { findOrInstall, findProgram } from './install-package.mjs';

/** Only an engine that hangs takes so long. An engine that can't start exits. */
const START_TIMEOUT_MILLIS = 120_000;

/** The engine of our own, and its folder. */
let started;

/**
 * Finds a Docker engine for the tests of the image and the composition. Returns environment variables for
 * them: SLUICE_TEST_DOCKER_HOST is the engine's address, and SLUICE_TEST_COMPOSE a JSON list of the words that
 * begin a command of Compose. Without a running engine, one is installed if possible, and started for the
 * time of this process. Both variables are empty without an engine.
 */
export async function findDocker() {
  const host = runningEngine() ?? (await startEngine());
  const compose = host && findCompose();
  if (compose) {
    return { SLUICE_TEST_DOCKER_HOST: host, SLUICE_TEST_COMPOSE: JSON.stringify(compose) };
  }
  const missing = host ? 'Compose' : 'Docker engine';
  console.error(`no ${missing} can be had: skipping the tests of the image and the composition`);
  return { SLUICE_TEST_DOCKER_HOST: '', SLUICE_TEST_COMPOSE: '' };
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

/** An engine of our own, with its own socket and folder, so that nothing of this machine is touched. */
async function startEngine() {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined;
  const dockerd = findOrInstall('dockerd', { apt: 'docker.io' });
  if (!dockerd || !findProgram('docker')) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-docker-'));
  const host = `unix://${join(folder, 'docker.sock')}`;
  const engine = spawn(
    dockerd,
    [
      ...['--host', host],
      ...['--data-root', join(folder, 'data')],
      ...['--exec-root', join(folder, 'exec')],
      ...['--pidfile', join(folder, 'docker.pid')],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const lines = [];
  const isUp = await new Promise((resolve) => {
    createInterface({ input: engine.stderr }).on('line', (line) => {
      lines.push(line);
      if (line.includes('API listen on')) resolve(true);
    });
    engine.on('error', () => resolve(false)).on('exit', () => resolve(false));
    setTimeout(() => {
      lines.push(`the Docker engine did not listen within ${START_TIMEOUT_MILLIS} ms`);
      resolve(false);
    }, START_TIMEOUT_MILLIS).unref();
  });
  if (!isUp) console.error(lines.slice(-3).join('\n'));
  started = { engine, folder };
  // This process may end without endDocker.
  process.on('exit', () => engine.kill('SIGTERM'));
  return isUp ? host : undefined;
}

/** Ends the engine that was started here, with all its containers, and leaves nothing of it. */
export async function endDocker() {
  if (!started) return;
  const { engine, folder } = started;
  if (engine.exitCode === null && engine.signalCode === null) {
    engine.kill('SIGTERM');
    await once(engine, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
}

function findCompose() {
  if (spawnSync('docker', ['compose', 'version'], { stdio: 'ignore' }).status === 0) {
    return ['docker', 'compose'];
  }
  const compose = findOrInstall('docker-compose', { apt: 'docker-compose' });
  return compose && [compose];
}
