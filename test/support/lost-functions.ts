import { CheckLoad, type CheckLoadOptions } from './check-load.js';
import { extent } from './extent.js';
import { forgetScripts, textsSent } from './forget-scripts.js';
import { knownScripts } from './known-scripts.js';
import type { RedisProcess } from './redis-process.js';
import { FORM } from './redis-user.js';
import { type ReplicaProcess, startReplica } from './replica-process.js';
import { until } from './until.js';

/** With SLUICE_TEST_FORM=script the servers lose their script caches. */
export const LOST = FORM === 'function' ? 'functions' : 'scripts';
const MAXIMUM = 60;
export const WAITERS = 4;
/** Checks that show that the load goes on. */
export const SOME = 100;
const FLUSHES = extent(20, 60);
const SETTINGS = {
  WINDOW_MILLIS: '3600000',
  MAX_REQUESTS: String(MAXIMUM),
  // Long enough for a busy machine, and for a failover.
  STORE_TIMEOUT_MILLIS: '10000',
};

/** Two replicas with these settings. */
export const startTwo = (settings: Record<string, string>): Promise<ReplicaProcess[]> =>
  Promise.all(Array.from({ length: 2 }, () => startReplica({ ...SETTINGS, ...settings })));

export async function underLoad(
  options: Omit<CheckLoadOptions, 'maximum'>,
  test: (load: CheckLoad) => Promise<void>,
): Promise<void> {
  const load = new CheckLoad({ ...options, maximum: MAXIMUM });
  try {
    await load.decide(SOME);
    await test(load);
  } finally {
    await load.end();
  }
}

/** Stops a load, and expects that clients were told exactly of what Redis has approved. */
export async function expectExact(
  load: CheckLoad,
  primaryOf: (name: string) => Promise<RedisProcess>,
): Promise<void> {
  await load.stop();
  expect(await load.violations(primaryOf)).toEqual([]);
}

/** Makes servers forget, one after the other, again and again between checks. */
export async function forgetInTurn(
  servers: readonly RedisProcess[],
  load: CheckLoad,
): Promise<void> {
  for (let i = 0; i < FLUSHES; i += 1) {
    await forgetScripts(servers[i % servers.length]!);
    await load.decide(10);
  }
}

/** Makes servers forget until `isOver`, also those that are down or not writable at times. */
async function keepForgetting(
  servers: readonly RedisProcess[],
  isOver: () => boolean,
): Promise<void> {
  await until(async () => {
    for (const server of servers.filter(({ responsive }) => responsive)) {
      // A server that is being killed, or that changes its role, cuts its connections.
      await forgetScripts(server).catch(() => undefined);
    }
    return isOver();
  });
}

/** Makes servers forget while something happens, and once more after it. */
export async function whileForgetting(
  servers: readonly RedisProcess[],
  happen: () => Promise<unknown>,
): Promise<void> {
  let isOver = false;
  const forgetting = keepForgetting(servers, () => isOver);
  try {
    await happen();
  } finally {
    isOver = true;
    await forgetting;
  }
}

/** Resolves when the replicas of a server have everything that it has written so far. */
export async function replicated(server: RedisProcess, replicas: number): Promise<void> {
  const client = server.connect();
  try {
    await client.ping();
    expect(await client.wait(replicas, 0)).toBeGreaterThanOrEqual(replicas);
  } finally {
    client.disconnect();
  }
}

/** Makes servers count calls and texts from here on. */
export async function countAgain(servers: readonly RedisProcess[]): Promise<void> {
  for (const server of servers) await server.command('CONFIG', 'RESETSTAT');
}

/** Expects that a server has got texts since it counts, and knows the scripts that were called. */
export async function expectKnown(
  servers: readonly RedisProcess[],
  scripts = ['check'],
): Promise<void> {
  for (const server of servers) {
    const { runs, texts } = await textsSent(server);
    expect(runs).toBeGreaterThan(0);
    expect(texts).toBeGreaterThan(0);
    expect(await knownScripts(server)).toEqual(expect.arrayContaining(scripts));
  }
}
