import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { freePort } from '../../support/free-port.js';
import { startRedisProcess, stopRedisProcesses } from '../../support/redis-process.js';
import { until } from '../../support/until.js';

/** `ratelimit`, built in a checkout of https://github.com/envoyproxy/ratelimit as of f2fb157, or ''. */
export const ENVOY_RATELIMIT = process.env.SLUICE_TEST_ENVOY_RATELIMIT ?? '';

/** How the benchmark starts it. */
interface PeerModule {
  readonly programs: Readonly<
    Record<
      'envoy-ratelimit',
      {
        readonly launch: (parts: object) => {
          readonly environment: Readonly<Record<string, string | number>>;
          /** The only one has the limits. */
          readonly files: Readonly<Record<string, string>>;
        };
      }
    >
  >;
}

const peer = '../../../bench/peers/envoy-ratelimit.mjs';
const { programs } = (await import(peer)) as PeerModule;
const { launch } = programs['envoy-ratelimit'];

const running = new Set<ChildProcess>();

/** Its windows are the minutes of the clock. */
const LATEST_SECOND = 40;

/** Whether the minute has room for requests that take a few seconds. */
export function isEarlyInMinute(): boolean {
  return new Date().getSeconds() < LATEST_SECOND;
}

/**
 * Starts Envoy's rate limit service on a Redis of its own.
 * @param folder for its files
 * @param yaml its limits
 * @returns its port for gRPC
 */
export async function startEnvoyRatelimit(folder: string, yaml: string): Promise<number> {
  const redis = await startRedisProcess({
    configure: () => ['user default on nopass ~* &* +@all'],
  });
  const [grpcPort, port, debugPort] = [await freePort(), await freePort(), await freePort()];
  const sparePorts = [grpcPort, debugPort];
  const { environment, files } = launch({ port, sparePorts, folder, redis, limit: 1 });
  for (const file of Object.keys(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), yaml);
  }
  const texts = Object.entries(environment).map(([name, value]) => [name, String(value)]);
  const child = spawn(ENVOY_RATELIMIT, [], {
    env: {
      ...(Object.fromEntries(texts) as Record<string, string>),
      // So that a denied request counts nothing, as in Sluice.
      STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: 'true',
    },
    stdio: 'ignore',
  });
  running.add(child);
  await until(() =>
    fetch(`http://127.0.0.1:${port}/healthcheck`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return grpcPort;
}

/** Ends what {@link startEnvoyRatelimit} has started. */
export async function killEnvoyRatelimit(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      running.delete(child);
      child.kill('SIGKILL');
      await once(child, 'exit');
    }),
  );
  await stopRedisProcesses();
}
