// How many decisions a second, and at what cost in CPU time: Sluice, the peers, and the limit.
import { saturate } from '../lib/load.mjs';
import { programsOf, startProgram, withCpu } from '../lib/programs.mjs';
import { progress } from '../lib/progress.mjs';
import { ratio, summary } from '../lib/statistics.mjs';

const WARM_UP_SECONDS = 3;
const KEYS = 5000;
const STOCK_PEERS = ['rate-limiter-flexible', 'express-rate-limit'];

/**
 * The calls for each program, whose answers mean the same as Sluice's. The limit is never reached, but no higher than
 * needed: GoCC reserves memory for all approvals that a key may give.
 */
const WORKLOADS = [
  { name: 'one key, all approved', load: { name: 'hot', keys: 1 }, limit: 1_000_000 },
  { name: '5,000 keys, all approved', load: { name: 'key', keys: KEYS }, limit: 1000 },
  {
    name: 'one key, nearly all refused',
    load: { name: 'full', keys: 1, mayRefuse: true },
    limit: 100,
  },
  {
    name: '5,000 keys, each about twice a window',
    load: { name: 'key', keys: KEYS, perSecond: 2 * KEYS },
    limit: 1000,
    // For Redis's part: the stock peers don't reach this rate everywhere.
    includes: ({ name, usesRedis }) => usesRedis && !STOCK_PEERS.includes(name),
    needsOthers: true,
  },
];

export async function throughput(options) {
  const results = [];
  for (const { name, load, limit, includes = () => true, needsOthers } of WORKLOADS) {
    const programs = programsOf(options).filter(includes);
    if (needsOthers && programs.length === 1) continue;
    const runs = await measureInTurns({ name, load, limit, programs }, options);
    results.push({
      name,
      programs: [...runs].map(([program, measured]) => summarize(program, measured)),
    });
    addRatios(results.at(-1), runs);
  }
  return results;
}

async function measureInTurns({ name, load, limit, programs }, options) {
  const { redisProgram, rounds, seconds } = options;
  const started = await Promise.all(
    programs.map((program) => startProgram(program, { redisProgram, limit })),
  );
  for (const program of started) {
    progress(`${name}: ${program.name} warms up`);
    await saturate(program.server, { ...load, seconds: WARM_UP_SECONDS });
  }
  const runs = new Map(started.map((program) => [program.name, []]));
  // The first round does not count: while the others warmed up, the keys of the first program became idle.
  for (let round = 0; round <= rounds; round += 1) {
    for (const program of started) {
      progress(`${name}: round ${round} of ${rounds}, ${program.name}`);
      const measured = await measure(program, { ...load, seconds });
      if (round > 0) runs.get(program.name).push(measured);
    }
  }
  await Promise.all(started.map((program) => program.stop()));
  return runs;
}

async function measure(program, load) {
  const run = await withCpu(program, () => saturate(program.server, load));
  const { answers, refused } = run;
  if (load.mayRefuse && program.name !== 'bare' && refused < answers / 2) {
    throw new Error(`${program.name} has refused only ${refused} of ${answers}: it knows no limit`);
  }
  return run;
}

const FIGURES = ['perSecond', 'p50Micros', 'p99Micros', 'cpuMicros', 'redisCpuMicros'];

function summarize(program, runs) {
  const figures = FIGURES.map((figure) => [figure, summary(runs.map((run) => run[figure]))]);
  return { program, ...Object.fromEntries(figures) };
}

/** What the goals compare, besides the stock peer and the limit. */
const RATIOS = {
  redisCpuToBefore: ['redisCpuMicros', 'sluice', 'before'],
  redisCpuToLimitador: ['redisCpuMicros', 'sluice', 'limitador-redis'],
  cpuToLimitador: ['cpuMicros', 'sluice', 'limitador-redis'],
  cpuToBare: ['cpuMicros', 'sluice', 'bare'],
  embeddedCpuToBare: ['cpuMicros', 'embedded', 'bare'],
  embeddedToGocc: ['perSecond', 'embedded', 'gocc'],
};

/** Of every program to the stock peer and to the limit, and of the pairs above, round by round. */
function addRatios(result, runs) {
  const ratioOf = (figure, program, other) => {
    const [values, others] = [program, other].map((name) =>
      runs.get(name)?.map((run) => run[figure]),
    );
    return values && others && ratio(values, others);
  };
  const stock = STOCK_PEERS[0];
  for (const entry of result.programs) {
    entry.toStock = ratioOf('perSecond', entry.program, stock);
    entry.toBare = ratioOf('perSecond', entry.program, 'bare');
    entry.redisCpuToStock = ratioOf('redisCpuMicros', entry.program, stock);
  }
  result.ratios = Object.fromEntries(
    Object.entries(RATIOS).map(([name, [figure, ...pair]]) => [name, ratioOf(figure, ...pair)]),
  );
}
