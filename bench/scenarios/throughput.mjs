// How many decisions a second, and at what cost in CPU time: Sluice, the peers, and the limit.
import { saturate } from '../lib/load.mjs';
import { peer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { ratio, summary } from '../lib/statistics.mjs';

const MANY = 1_000_000_000;
const WARM_UP_SECONDS = 3;

/** What is asked of whom; every program answers what Sluice answers. */
const WORKLOADS = [
  {
    name: 'one key, all approved',
    load: { name: 'hot', keys: 1 },
    programs: ['sluice', 'embedded', 'rate-limiter-flexible', 'express-rate-limit', 'bare'],
  },
  {
    name: '5,000 keys, all approved',
    load: { name: 'key', keys: 5000 },
    programs: ['sluice', 'embedded', 'rate-limiter-flexible', 'express-rate-limit', 'bare'],
  },
  {
    name: 'one key, nearly all refused',
    load: { name: 'full', keys: 1, mayRefuse: true },
    limit: 100,
    programs: ['sluice', 'embedded', 'rate-limiter-flexible', 'express-rate-limit'],
  },
];

export async function throughput({ redis, rounds, seconds }) {
  const results = [];
  for (const { name, load, programs, limit = MANY } of WORKLOADS) {
    const servers = await Promise.all(programs.map((program) => start(program, redis, limit)));
    for (const server of servers) {
      progress(`${name}: ${server.name} warms up`);
      await saturate(server, { ...load, seconds: WARM_UP_SECONDS });
    }
    const runs = servers.map(() => []);
    for (let round = 0; round < rounds; round += 1) {
      for (const [i, server] of servers.entries()) {
        progress(`${name}: round ${round + 1} of ${rounds}, ${server.name}`);
        runs[i].push(await measure(server, redis, { ...load, seconds }));
      }
    }
    await Promise.all(servers.map((server) => server.stop()));
    results.push({ name, programs: programs.map((program, i) => summarize(program, runs[i])) });
    addRatios(results.at(-1), programs, runs);
  }
  return results;
}

function start(program, redis, limit) {
  const environment = { REDIS_URL: redis.url, MAX_REQUESTS: String(limit) };
  if (program === 'sluice') return Server.start(program, SLUICE, environment);
  if (program === 'embedded') {
    return Server.start(program, SLUICE, { MAX_REQUESTS: environment.MAX_REQUESTS });
  }
  return Server.start(program, peer(program), environment);
}

async function measure(server, redis, load) {
  const [cpu, redisCpu] = [await server.cpuMicros(), await redis.cpuMicros()];
  const { perSecond, answers, p50Micros, p99Micros } = await saturate(server, load);
  return {
    perSecond,
    p50Micros,
    p99Micros,
    cpuMicros: ((await server.cpuMicros()) - cpu) / answers,
    redisCpuMicros: ((await redis.cpuMicros()) - redisCpu) / answers,
  };
}

const FIGURES = ['perSecond', 'p50Micros', 'p99Micros', 'cpuMicros', 'redisCpuMicros'];

function summarize(program, runs) {
  const figures = FIGURES.map((figure) => [figure, summary(runs.map((run) => run[figure]))]);
  return { program, ...Object.fromEntries(figures) };
}

/** Of every program to the stock peer and to the limit, round by round. */
function addRatios(result, programs, runs) {
  const values = (program, figure) => runs[programs.indexOf(program)]?.map((run) => run[figure]);
  const stock = 'rate-limiter-flexible';
  for (const entry of result.programs) {
    const rates = values(entry.program, 'perSecond');
    entry.toStock = ratio(rates, values(stock, 'perSecond'));
    if (programs.includes('bare')) entry.toBare = ratio(rates, values('bare', 'perSecond'));
    entry.redisCpuToStock = ratio(
      values(entry.program, 'redisCpuMicros'),
      values(stock, 'redisCpuMicros'),
    );
  }
}
