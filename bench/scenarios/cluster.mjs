// A Redis Cluster of three primaries against one Redis: the CPU of Redis and of the replica for each decision, and the
// latency at half of the peak rate.
import { join } from 'node:path';

import { saturate } from '../lib/load.mjs';
import { RedisServer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { RedisCluster } from '../lib/redis-cluster.mjs';
import { median, ratio, summary } from '../lib/statistics.mjs';

const PRIMARIES = 3;
const KEYS = 5000;
const WARM_UP_SECONDS = 3;
const LIMITS = { WINDOW_MILLIS: '1000', MAX_REQUESTS: '1000000000' };
/** The connections of the load generator. With fewer, fewer checks reach the replica in a tick. */
const CONNECTIONS = [64, 16];

export async function cluster({ redisProgram, rounds, seconds, before }) {
  const builds = [
    ['now', SLUICE],
    ...(before ? [['before', join(before, 'dist', 'main.js')]] : []),
  ];
  const sides = [];
  for (const [build, program] of builds) {
    for (const store of ['one', 'cluster'])
      sides.push(await createSide(redisProgram, build, program, store));
  }
  const loads = [];
  for (const connections of CONNECTIONS) {
    const atPeak = await inTurns(sides, { connections }, { rounds, seconds });
    const halfOf = ({ name }) => median(atPeak.get(name).map(({ perSecond }) => perSecond)) / 2;
    // At the same rate for all, so that the latencies can be compared.
    const perSecond = Math.min(...sides.filter(({ build }) => build === 'now').map(halfOf));
    const atHalf = await inTurns(
      sides.filter(({ build }) => build === 'now'),
      { connections, perSecond },
      { rounds, seconds },
    );
    loads.push({ connections, ...compare(sides, atPeak, atHalf) });
  }
  for (const { replica, redis } of sides) {
    await replica.stop();
    await redis.stop();
  }
  return { primaries: PRIMARIES, keys: KEYS, loads };
}

async function createSide(redisProgram, build, program, store) {
  const name = `${build}, ${store}`;
  progress(`cluster: ${name} starts`);
  const redis =
    store === 'one'
      ? await RedisServer.start(redisProgram)
      : await RedisCluster.start(redisProgram, PRIMARIES);
  const replica = await Server.start(name, program, { ...LIMITS, ...redis.settings });
  await saturate(replica, { name: 'key', keys: KEYS, seconds: WARM_UP_SECONDS });
  return { name, build, store, redis, replica };
}

/** @returns by the names of the sides, what each round measured */
async function inTurns(sides, load, { rounds, seconds }) {
  const measured = new Map(sides.map(({ name }) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, redis, replica } of sides) {
      progress(
        `cluster: ${load.connections} connections, round ${round + 1} of ${rounds}, ${name}`,
      );
      const [cpu, redisCpu] = [await replica.cpuMicros(), await redis.cpuMicros()];
      const run = await saturate(replica, { name: 'key', keys: KEYS, seconds, ...load });
      measured.get(name).push({
        perSecond: run.perSecond,
        p99Micros: run.p99Micros,
        cpuMicros: ((await replica.cpuMicros()) - cpu) / run.answers,
        redisCpuMicros: ((await redis.cpuMicros()) - redisCpu) / run.answers,
      });
    }
  }
  return measured;
}

function compare(sides, atPeak, atHalf) {
  const values = (measured, name, figure) => measured.get(name).map((run) => run[figure]);
  const compared = (figure, measured = atPeak) =>
    ratio(values(measured, 'now, cluster', figure), values(measured, 'now, one', figure));
  const redisCpu = compared('redisCpuMicros');
  return {
    sides: sides.map(({ name }) => ({
      name,
      ...Object.fromEntries(
        ['perSecond', 'cpuMicros', 'redisCpuMicros'].map((figure) => [
          figure,
          summary(values(atPeak, name, figure)),
        ]),
      ),
      p99Micros: atHalf.has(name) ? summary(values(atHalf, name, 'p99Micros')) : undefined,
    })),
    redisCpuToOne: redisCpu,
    cpuToOne: compared('cpuMicros'),
    p99ToOne: compared('p99Micros', atHalf),
    // If Redis is what is short, as it is with enough replicas.
    decisionsToOne: PRIMARIES / redisCpu,
  };
}
