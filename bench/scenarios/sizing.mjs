// What docs/sizing.md needs: the CPU of a replica and of Redis for each decision, by the checks that share a tick, by
// replicas and by primaries. The costs of a check and of a call are fitted to one Redis and to a cluster of three
// primaries, and predict what is then measured: a cluster of six.
import { CONNECTIONS, saturate } from '../lib/load.mjs';
import { RedisServer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { RedisCluster } from '../lib/redis-cluster.mjs';
import { callsPerDecision, checksPerTick, costAt, fitCost } from '../lib/sizing-formula.mjs';
import { median } from '../lib/statistics.mjs';

const KEYS = 10_000;
const LONG_WINDOW = 3_600_000;
const SHORT_WINDOW = 1000;
/** With fewer, fewer checks share a tick. */
const CONNECTIONS_TO_FIT = [CONNECTIONS, 16, 4];
const PRIMARIES_TO_FIT = 3;
const PRIMARIES_TO_PREDICT = 6;
/** Of each replica, if there are several: eight of them share a machine with two cores. */
const LOW_RATE = 2000;
const REPLICAS = [1, 2, 4, 8];
const WARM_UP_SECONDS = 2;

export async function sizing(options) {
  const measure = (title, setting) => measurePoint(title, setting, options);
  const base = { replicas: 1, primaries: 1, keys: KEYS, windowMillis: LONG_WINDOW };
  const byConnections = async (title, setting) => {
    const points = [];
    for (const connections of CONNECTIONS_TO_FIT) {
      points.push(
        await measure(`${title}, ${connections} connections`, { ...setting, connections }),
      );
    }
    return points;
  };
  const onOneRedis = await byConnections('one Redis', base);
  const windows = await measure('one Redis, short windows', {
    ...base,
    windowMillis: SHORT_WINDOW,
  });
  const hotKey = await measure('one Redis, one key', { ...base, keys: 1 });
  const cluster = { ...base, isCluster: true };
  const onThree = await byConnections('three primaries', {
    ...cluster,
    primaries: PRIMARIES_TO_FIT,
  });
  const byReplicas = [];
  for (const replicas of REPLICAS) {
    const title = replicas === 1 ? '1 replica' : `${replicas} replicas`;
    byReplicas.push(await measure(title, { ...base, replicas, perSecond: LOW_RATE }));
  }
  const six = { ...cluster, primaries: PRIMARIES_TO_PREDICT };
  const measured = await measure('six primaries', six);
  return {
    onOneRedis: [...onOneRedis, windows, hotKey],
    byReplicas,
    onCluster: [...onThree, measured],
    costs: { oneRedis: fitCosts(onOneRedis), cluster: fitCosts(onThree) },
    prediction: predict(onThree, measured),
  };
}

/** What a check and a call cost a replica and Redis. */
function fitCosts(points) {
  const fit = (figure) =>
    fitCost(points.map((point) => ({ calls: point.calls, micros: point[figure] })));
  return { replica: fit('replicaMicros'), redis: fit('redisMicros') };
}

/** @param points of a smaller cluster, the first with as many connections as the measured one */
function predict(points, measured) {
  // A replica does not count its ticks. The calls tell how many checks share one.
  const perTick = checksPerTick(points[0].calls, points[0].primaries);
  const calls = callsPerDecision(perTick, measured.primaries);
  const costs = fitCosts(points);
  return {
    title: measured.title,
    calls,
    replicaMicros: costAt(costs.replica, calls),
    redisMicros: costAt(costs.redis, calls),
    measured,
  };
}

/** Measures a setting in several rounds. @returns the medians */
async function measurePoint(title, setting, { redisProgram, rounds, seconds }) {
  progress(`sizing: ${title}`);
  const redis = setting.isCluster
    ? await RedisCluster.start(redisProgram, setting.primaries)
    : await RedisServer.start(redisProgram);
  const environment = {
    ...redis.settings,
    WINDOW_MILLIS: String(setting.windowMillis),
    MAX_REQUESTS: '1000000000',
  };
  const replicas = [];
  for (let i = 0; i < setting.replicas; i += 1) {
    replicas.push(await Server.start(`replica ${i + 1}`, SLUICE, environment));
  }
  const load = {
    name: 'key',
    keys: setting.keys,
    perSecond: setting.perSecond,
    connections: setting.connections ?? Math.ceil(CONNECTIONS / setting.replicas),
  };
  const ask = (length) =>
    Promise.all(replicas.map((replica) => saturate(replica, { ...load, seconds: length })));
  await ask(WARM_UP_SECONDS);
  const runs = [];
  for (let round = 0; round < rounds; round += 1) {
    progress(`sizing: ${title}, round ${round + 1} of ${rounds}`);
    const before = await usage(replicas, redis);
    const answers = await ask(seconds);
    const after = await usage(replicas, redis);
    const decisions = answers.reduce((sum, each) => sum + each.answers, 0);
    const perSecond = answers.reduce((sum, each) => sum + each.perSecond, 0);
    const spent = (figure) => (after[figure] - before[figure]) / decisions;
    runs.push({
      perSecond,
      replicaMicros: spent('replicaMicros'),
      redisMicros: spent('redisMicros'),
      calls: spent('calls'),
      begun: Math.min(1, setting.keys / (perSecond * (setting.windowMillis / 1000))),
    });
  }
  for (const replica of replicas) await replica.stop();
  await redis.stop();
  const { replicas: count, primaries } = setting;
  const medians = Object.keys(runs[0]).map((figure) => [
    figure,
    median(runs.map((run) => run[figure])),
  ]);
  return { title, replicas: count, primaries, ...Object.fromEntries(medians) };
}

async function usage(replicas, redis) {
  const each = await Promise.all(replicas.map((replica) => replica.cpuMicros()));
  return {
    replicaMicros: each.reduce((sum, micros) => sum + micros, 0),
    redisMicros: await redis.cpuMicros(),
    calls: await redis.scriptCalls(),
  };
}
