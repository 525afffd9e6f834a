import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { GenericContainer, Wait } from 'testcontainers';

/** A real Redis on this machine. */
export interface RedisServer {
  readonly url: string;
  stop(): Promise<void>;
}

const READY = /Ready to accept connections/;
const WITHOUT_PERSISTENCE = ['--save', '', '--appendonly', 'no'];

/** Starts the Redis that `scripts/lib/find-redis.mjs` has found. */
export async function startRedisServer(): Promise<RedisServer> {
  const { SLUICE_TEST_REDIS_IMAGE: image, SLUICE_TEST_REDIS_SERVER: program } = process.env;
  if (program !== undefined) return startProcess(program);
  if (image !== undefined) return startContainer(image);
  throw new Error('no Redis to test with: run the tests by `npm test`');
}

async function startContainer(image: string): Promise<RedisServer> {
  const container = await new GenericContainer(image)
    // Seen from inside its container, the tests are not on the loopback interface.
    .withCommand(['redis-server', '--protected-mode', 'no', ...WITHOUT_PERSISTENCE])
    .withExposedPorts(6379)
    .withWaitStrategy(Wait.forLogMessage(READY))
    .start();
  return {
    url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
    stop: async () => {
      await container.stop();
    },
  };
}

async function startProcess(program: string): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-redis-'));
  const port = await freePort();
  const server = spawn(
    program,
    ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, ...WITHOUT_PERSISTENCE],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await saysReady(server);
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: async () => {
      if (server.exitCode === null && server.signalCode === null) {
        server.kill('SIGKILL');
        await once(server, 'exit');
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function saysReady(server: ChildProcess): Promise<void> {
  const lines = createInterface({ input: server.stdout! });
  await new Promise<void>((resolve, reject) => {
    lines.on('line', (line) => {
      if (line.includes('Ready to accept connections')) resolve();
    });
    server.once('error', reject);
    server.once('exit', (code) => {
      reject(new Error(`redis-server ended with code ${code}`));
    });
  });
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
