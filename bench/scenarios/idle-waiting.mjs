// The cost of waiting while nothing happens: 3,000 keys, each with a waiter on either of two replicas.
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { RedisServer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { ratio, summary } from '../lib/statistics.mjs';

const KEYS = 3000;
const REPLICAS = 2;
const COMING_AT_ONCE = 100;
const IDLE_SECONDS = 10;
/** Until the work for new waiters is done: leases of three seconds, elections. */
const SETTLE_SECONDS = 5;

export async function idleWaiting({ redisProgram, rounds, before }) {
  const builds = [['sluice', SLUICE]];
  if (before) builds.push(['before', join(before, 'dist', 'main.js')]);
  const sides = [];
  for (const [program, main] of builds) sides.push(await crowd(program, main, redisProgram));
  await delay(SETTLE_SECONDS * 1000);
  for (let round = 0; round < rounds; round += 1) {
    for (const side of sides) {
      progress(`idle waiting: round ${round + 1} of ${rounds}, ${side.program}`);
      side.runs.push(await idle(side));
    }
  }
  for (const side of sides) await side.stop();
  const values = ({ runs }, figure) => runs.map((run) => run[figure]);
  const toBefore = (figure) =>
    sides.length > 1 ? ratio(values(sides[0], figure), values(sides[1], figure)) : undefined;
  return {
    keys: KEYS,
    replicas: REPLICAS,
    programs: sides.map((side) => ({
      program: side.program,
      commandsPerSecond: summary(values(side, 'commandsPerSecond')),
      redisCpuPercent: summary(values(side, 'redisCpuPercent')),
      replicaCpuPercent: summary(values(side, 'replicaCpuPercent')),
    })),
    redisCpuToBefore: toBefore('redisCpuPercent'),
    replicaCpuToBefore: toBefore('replicaCpuPercent'),
  };
}

/** A Redis, replicas on it, and waiters, in windows that don't end during the measurement. */
async function crowd(program, main, redisProgram) {
  const redis = await RedisServer.start(redisProgram);
  const environment = {
    REDIS_URL: redis.url,
    WINDOW_MILLIS: '3600000',
    MAX_REQUESTS: '1',
    // A slow machine falls behind when thousands come, and a waiter that is denied then measures nothing.
    STORE_TIMEOUT_MILLIS: '10000',
  };
  const replicas = [];
  for (let i = 0; i < REPLICAS; i += 1) {
    replicas.push(await Server.start(`${program} ${i + 1}`, main, environment));
  }
  const keys = Array.from({ length: KEYS }, (_, i) => `idle-${i}`);
  const groups = [];
  for (let i = 0; i < KEYS; i += COMING_AT_ONCE) groups.push(keys.slice(i, i + COMING_AT_ONCE));

  progress(`idle waiting: ${program}, the keys are filled`);
  for (const group of groups) {
    await Promise.all(group.map((key) => approve(`${replicas[0].url}/rate/${key}`)));
  }
  const waiters = [];
  for (const [i, { url }] of replicas.entries()) {
    progress(`idle waiting: ${program}, ${KEYS} come to wait on replica ${i + 1}`);
    let come = 0;
    for (const group of groups) {
      waiters.push(...group.map((key) => wait(`${url}/rate/${key}?canWait=true`)));
      come += group.length;
      await untilWaiting(url, come);
    }
  }
  const stop = async () => {
    for (const waiter of waiters) waiter.leave();
    await Promise.all(replicas.map((replica) => replica.stop()));
    await redis.stop();
  };
  return { program, redis, replicas, stop, runs: [] };
}

async function approve(url) {
  const { status } = await fetch(url, { method: 'POST' });
  if (status !== 200) throw new Error(`an answer of ${status}, and no approval`);
}

/** A request, on a connection of its own, that must not be answered before it leaves. */
function wait(url) {
  let hasLeft = false;
  const waiter = request(url, { method: 'POST', agent: false });
  waiter.on('response', ({ statusCode }) => {
    throw new Error(`a waiter was answered with ${statusCode}`);
  });
  waiter.on('error', (error) => {
    if (!hasLeft) throw error;
  });
  waiter.end();
  return {
    leave: () => {
      hasLeft = true;
      waiter.destroy();
    },
  };
}

async function untilWaiting(url, count) {
  for (;;) {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    const waiting = Number(/^ratelimit_waiting (\d+)/m.exec(metrics)?.[1]);
    if (waiting === count) return;
    await delay(100);
  }
}

/** The work of Redis and the replicas in some seconds: CPU in percent of a core, for replicas the mean of both. */
async function idle({ redis, replicas }) {
  const look = async () => ({
    at: performance.now(),
    commands: await redis.commandsProcessed(),
    redisCpu: await redis.cpuMicros(),
    replicaCpu: (await Promise.all(replicas.map((replica) => replica.cpuMicros()))).reduce(
      (sum, micros) => sum + micros,
    ),
  });
  const before = await look();
  await delay(IDLE_SECONDS * 1000);
  const after = await look();
  const seconds = (after.at - before.at) / 1000;
  const percent = (micros) => (100 * micros) / 1e6 / seconds;
  return {
    commandsPerSecond: (after.commands - before.commands) / seconds,
    redisCpuPercent: percent(after.redisCpu - before.redisCpu),
    replicaCpuPercent: percent(after.replicaCpu - before.replicaCpu) / replicas.length,
  };
}
