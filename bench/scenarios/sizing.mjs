// What docs/sizing.md needs: the CPU of a replica and of Redis for each decision, by the checks that share a tick, by
// replicas and by primaries; and how many calls a decision takes, predicted for a cluster that was not measured before.
import { CONNECTIONS, saturate } from '../lib/load.mjs';
import { RedisServer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { RedisCluster } from '../lib/redis-cluster.mjs';
import { callsPerDecision, checksPerTick } from '../lib/sizing-formula.mjs';
import { median } from '../lib/statistics.mjs';

const KEYS = 10_000;
const LONG_WINDOW = 3_600_000;
const SHORT_WINDOW = 1000;
/** With fewer, fewer checks share a tick. */
const FEW_CONNECTIONS = 8;
/** Of each replica, if there are several: eight of them share a machine with two cores. */
const LOW_RATE = 2000;
const REPLICAS = [1, 2, 4, 8];
const PRIMARIES = [1, 3, 6];
const WARM_UP_SECONDS = 2;

export async function sizing(options) {
  const measure = (title, setting) => measurePoint(title, setting, options);
  const base = { replicas: 1, primaries: 1, keys: KEYS, windowMillis: LONG_WINDOW };
  const busy = await measure('many connections', base);
  const quiet = await measure('few connections', { ...base, connections: FEW_CONNECTIONS });
  const windows = await measure('short windows', { ...base, windowMillis: SHORT_WINDOW });
  const byPrimaries = [];
  for (const primaries of PRIMARIES) {
    const title = primaries === 1 ? '1 primary' : `${primaries} primaries`;
    byPrimaries.push(await measure(title, { ...base, primaries, isCluster: true }));
  }
  const [, spread] = byPrimaries;
  // A replica does not count its ticks. The calls tell how many checks share one.
  const perTick = checksPerTick(spread.calls, spread.primaries);
  const byReplicas = [];
  for (const replicas of REPLICAS) {
    const title = replicas === 1 ? '1 replica' : `${replicas} replicas`;
    byReplicas.push(await measure(title, { ...base, replicas, perSecond: LOW_RATE }));
  }
  const hotKey = await measure('one key', { ...base, keys: 1 });
  const primaries = 6;
  const unseen = { ...base, primaries, isCluster: true, windowMillis: SHORT_WINDOW };
  const measured = await measure('six primaries, short windows', unseen);
  return {
    onOneRedis: [busy, quiet, windows],
    byReplicas,
    byPrimaries,
    hotKey,
    prediction: { calls: callsPerDecision(perTick, primaries), measured },
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
