// The latency of checks at half of the rate that a program can reach.
import { latencyAt, saturate } from '../lib/load.mjs';
import { peer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { median, summary } from '../lib/statistics.mjs';

const LOAD = { name: 'hot', keys: 1 };
const PEAK_SECONDS = 3;

export async function latency({ redis, rounds, seconds }) {
  const environment = { REDIS_URL: redis.url, MAX_REQUESTS: '1000000000' };
  const [sluice, stock, bare] = await Promise.all([
    Server.start('sluice', SLUICE, environment),
    Server.start('rate-limiter-flexible', peer('rate-limiter-flexible'), environment),
    Server.start('bare', peer('bare')),
  ]);
  const half = new Map();
  for (const server of [sluice, stock, bare]) {
    progress(`latency: the peak of ${server.name}`);
    await saturate(server, { ...LOAD, seconds: PEAK_SECONDS });
    const peak = await saturate(server, { ...LOAD, seconds: PEAK_SECONDS });
    half.set(server, peak.perSecond / 2);
  }
  // The machine's own round trip, under as many requests as Sluice has to answer.
  half.set(bare, half.get(sluice));

  const servers = [sluice, stock, bare];
  const runs = servers.map(() => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [i, server] of servers.entries()) {
      progress(`latency: round ${round + 1} of ${rounds}, ${server.name}`);
      runs[i].push(await latencyAt(server, half.get(server), { ...LOAD, seconds }));
    }
  }
  await Promise.all(servers.map((server) => server.stop()));
  return servers.map(({ name }, i) => ({
    program: name,
    perSecond: median(runs[i].map((run) => run.perSecond)),
    p50Micros: summary(runs[i].map((run) => run.p50Micros)),
    p99Micros: summary(runs[i].map((run) => run.p99Micros)),
  }));
}
