// What docs/sizing.md needs: the CPU of a replica and of Redis for each decision, as a sum (lib/sizing-formula.mjs); how both scale with replicas and with primaries; and a prediction beside a
// measurement that it was not made from.
import { CONNECTIONS, saturate } from '../lib/load.mjs';
import { RedisServer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { RedisCluster } from '../lib/redis-cluster.mjs';
import { callsPerDecision, cost, solve } from '../lib/sizing-formula.mjs';
import { median } from '../lib/statistics.mjs';

const KEYS = 3000;
const LONG_WINDOW = 3_600_000;
const SHORT_WINDOW = 1000;
/** Of each replica, if there are several: eight of them share a machine with two cores. */
const LOW_RATE = 2000;
const MIDDLE_RATE = 6000;
const REPLICAS = [1, 2, 4, 8];
const PRIMARIES = [1, 3, 6];
const WARM_UP_SECONDS = 2;
const FIGURES = ['replicaMicros', 'redisMicros'];

export async function sizing(options) {
  const measure = (title, setting) => measurePoint(title, setting, options);
  const base = { replicas: 1, primaries: 1, keys: KEYS, windowMillis: LONG_WINDOW };
  const peak = await measure('one replica, as fast as it can', base);
  const low = await measure('one replica, few checks', { ...base, perSecond: LOW_RATE });
  const windows = await measure('one replica, short windows', {
    ...base,
    windowMillis: SHORT_WINDOW,
    perSecond: MIDDLE_RATE,
  });
  const byReplicas = [];
  for (const replicas of REPLICAS) {
    const setting = { ...base, replicas, perSecond: LOW_RATE };
    byReplicas.push(await measure(replicas === 1 ? '1 replica' : `${replicas} replicas`, setting));
  }
  const byPrimaries = [];
  for (const primaries of PRIMARIES) {
    const setting = { ...base, primaries, isCluster: true, perSecond: MIDDLE_RATE };
    byPrimaries.push(
      await measure(primaries === 1 ? '1 primary' : `${primaries} primaries`, setting),
    );
  }
  const [onePrimary, spread] = byPrimaries;
  const costs = Object.fromEntries(
    FIGURES.map((figure) => {
      const point = ({ calls, begun, [figure]: micros }) => ({ calls, begun, micros });
      return [
        figure,
        solve({
          busy: point(peak),
          quiet: point(low),
          windows: point(windows),
          spread: { ...point(spread), ticks: onePrimary.calls },
        }),
      ];
    }),
  );
  const hotKey = await measure('one key', { ...base, keys: 1 });
  const unseen = {
    replicas: 2,
    primaries: 6,
    isCluster: true,
    keys: KEYS,
    windowMillis: SHORT_WINDOW,
    perSecond: MIDDLE_RATE,
  };
  const measured = await measure('two replicas, six primaries, short windows', unseen);
  // As on one primary at the same rate.
  const ticks = onePrimary.calls;
  const calls = callsPerDecision(1 / ticks, unseen.primaries);
  const { begun } = measured;
  const predicted = Object.fromEntries(
    FIGURES.map((figure) => [figure, cost(costs[figure], { ticks, calls, begun })]),
  );
  return {
    fitted: [peak, low, windows, spread],
    costs,
    byReplicas,
    byPrimaries,
    hotKey,
    prediction: { predicted: { ...predicted, calls, begun }, measured },
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
    connections: Math.ceil(CONNECTIONS / setting.replicas),
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
