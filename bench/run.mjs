// `npm run bench`: measures Sluice against its peers and against the limits of Node and Redis, prints
// the tables, and writes them and a chart to bench/results/latest.*. See BENCHMARKS.md.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { findRedisServer } from '../scripts/lib/find-redis.mjs';
import { build, installDependencies, installIn } from '../scripts/lib/prepare.mjs';

const HELP = `npm run bench -- [options]

  --rounds N     rounds of each measurement, interleaved (5)
  --seconds N    of load in each round (3)
  --windows N    windows' ends in the measurement of wakes (50)
  --only A,B     only these: throughput, latency, wake, many-waiters, many-keys, debug, raw-scripts
  --publish      put a whole run into BENCHMARKS.md and, for the README, bench/results/published.*
`;
const RESULTS = new URL('results/', import.meta.url);
const BENCHMARKS = new URL('../BENCHMARKS.md', import.meta.url);

const argumentsGiven = process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : [];
const options = readOptions();
installDependencies();
installIn('bench');
build();
const redisProgram = findRedisServer();

// Not before: these import what has just been installed.
const { machine } = await import('./lib/machine.mjs');
const { GENERATOR } = await import('./lib/load.mjs');
const { RedisServer } = await import('./lib/processes.mjs');
const { progressEnds } = await import('./lib/progress.mjs');
const { report } = await import('./lib/report.mjs');
const { chart } = await import('./lib/chart.mjs');

const redis = await RedisServer.start(redisProgram);
const results = {
  measuredAt: new Date().toISOString().slice(0, 10),
  command: ['npm run bench', ...argumentsGiven].join(' '),
  machine: machine(await redis.version(), GENERATOR),
};
for (const [name, scenario] of Object.entries(await scenarios())) {
  if (!options.only.includes(name)) continue;
  results[name] = await scenario({ ...options, redis, redisProgram });
}
await redis.stop();
progressEnds();

const text = report(results);
console.log(text);
mkdirSync(RESULTS, { recursive: true });
write('latest');
if (options.publish) {
  write('published');
  publish(text);
}
process.exit(0);

function write(name) {
  const json = JSON.stringify(results, undefined, 2);
  writeFileSync(new URL(`${name}.json`, RESULTS), `${json}\n`);
  if (results.throughput) writeFileSync(new URL(`${name}.svg`, RESULTS), chart(results));
}

function readOptions() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '3' },
      windows: { type: 'string', default: '50' },
      only: { type: 'string', default: '' },
      publish: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    process.exit(0);
  }
  const all = 'throughput,latency,wake,many-waiters,many-keys,debug,raw-scripts'.split(',');
  const only = values.only === '' ? all : values.only.split(',');
  const unknown = only.filter((name) => !all.includes(name));
  if (values.publish && values.only !== '') {
    console.error('--publish takes a whole run, without --only');
    process.exit(2);
  }
  const [rounds, seconds, windows] = [values.rounds, values.seconds, values.windows].map(Number);
  if (unknown.length > 0 || ![rounds, seconds, windows].every((n) => n > 0)) {
    console.error(
      `${unknown.length > 0 ? `no measurement is called ${unknown[0]}\n\n` : ''}${HELP}`,
    );
    process.exit(2);
  }
  return { rounds, seconds, windows, only, publish: values.publish };
}

async function scenarios() {
  const { throughput } = await import('./scenarios/throughput.mjs');
  const { latency } = await import('./scenarios/latency.mjs');
  const { wake } = await import('./scenarios/wake.mjs');
  const { manyWaiters } = await import('./scenarios/many-waiters.mjs');
  const { manyKeys } = await import('./scenarios/many-keys.mjs');
  const { debugListing } = await import('./scenarios/debug-listing.mjs');
  const { rawScripts } = await import('./scenarios/raw-scripts.mjs');
  return {
    throughput,
    latency,
    wake,
    'many-waiters': manyWaiters,
    'many-keys': manyKeys,
    debug: debugListing,
    'raw-scripts': rawScripts,
  };
}

function publish(table) {
  const [begin, end] = ['<!-- results -->', '<!-- end of results -->'];
  const document = readFileSync(BENCHMARKS, 'utf8');
  const [head, tail] = [document.split(begin)[0], document.split(end)[1]];
  writeFileSync(BENCHMARKS, `${head}${begin}\n\n${table}\n${end}${tail}`);
  console.log('published; `npm run format` before you commit it');
}
