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
  for (const server of [sluice, stock]) {
    progress(`latency: the peak of ${server.name}`);
    await saturate(server, { ...LOAD, seconds: PEAK_SECONDS });
    const peak = await saturate(server, { ...LOAD, seconds: PEAK_SECONDS });
    half.set(server, peak.perSecond / 2);
  }

  // Each at half of its own peak, Sluice also at the stock peer's rate, and the machine's own round trip with as many
  // requests as Sluice has to answer.
  const lines = [
    { name: 'sluice', server: sluice, rate: half.get(sluice) },
    { name: 'rate-limiter-flexible', server: stock, rate: half.get(stock) },
    { name: "sluice, at the stock peer's rate", server: sluice, rate: half.get(stock) },
    { name: 'bare', server: bare, rate: half.get(sluice) },
  ];
  const runs = lines.map(() => []);
  for (let round = -1; round < rounds; round += 1) {
    for (const [i, { name, server, rate }] of lines.entries()) {
      progress(`latency: ${round < 0 ? 'warm-up' : `round ${round + 1} of ${rounds}`}, ${name}`);
      const run = await latencyAt(server, rate, { ...LOAD, seconds });
      if (round >= 0) runs[i].push(run);
    }
  }
  await Promise.all([sluice, stock, bare].map((server) => server.stop()));
  return lines.map(({ name }, i) => ({
    program: name,
    perSecond: median(runs[i].map((run) => run.perSecond)),
    p50Micros: summary(runs[i].map((run) => run.p50Micros)),
    p99Micros: summary(runs[i].map((run) => run.p99Micros)),
  }));
}
