// `npm run bench`: measures Sluice against its peers and against the limits of Node and Redis, prints
// the tables, and writes the results to bench/results/latest.json. See BENCHMARKS.md.
import { mkdirSync, writeFileSync } from 'node:fs';

import { findRedisServer } from '../scripts/lib/find-redis.mjs';
import { build, installDependencies, installIn } from '../scripts/lib/prepare.mjs';
import { builtPeers, NATIVE_PEERS } from './lib/native-peers.mjs';
import { publicCommand, readOptions } from './lib/options.mjs';

/** The measurements: the module in scenarios/ of each, and the function that it exports. */
const SCENARIOS = {
  throughput: ['throughput', 'throughput'],
  latency: ['latency', 'latency'],
  rls: ['rls', 'rls'],
  wake: ['wake', 'wake'],
  'many-waiters': ['many-waiters', 'manyWaiters'],
  'kept-waiters': ['kept-waiters', 'keptWaiters'],
  lists: ['lists', 'lists'],
  'idle-waiting': ['idle-waiting', 'idleWaiting'],
  'many-at-once': ['many-at-once', 'manyAtOnce'],
  client: ['client', 'client'],
  'many-keys': ['many-keys', 'manyKeys'],
  debug: ['debug-listing', 'debugListing'],
  logged: ['logged-answers', 'loggedAnswers'],
  rules: ['rules', 'rules'],
  'raw-scripts': ['raw-scripts', 'rawScripts'],
  terms: ['terms', 'terms'],
  algorithms: ['algorithms', 'algorithms'],
  'paced-waiters': ['paced-waiters', 'pacedWaiters'],
  cluster: ['cluster', 'cluster'],
  sizing: ['sizing', 'sizing'],
  starts: ['starts', 'starts'],
  regress: ['regress', 'regress'],
};
const HELP = `npm run bench -- [options]

  --rounds N        rounds of each measurement, interleaved (5)
  --seconds N       of load in each round (3)
  --windows N       windows' ends in the measurement of wakes (50)
  --only A,B        only these: ${Object.keys(SCENARIOS).join(', ')}
  --with NAME=PATH  beside a peer that you have built: ${Object.keys(NATIVE_PEERS).join(', ')};
                    once for each, with the path of its program; of limitador also of its checkout, which is
                    built without its disk storage
  --base COMMIT     of regress: what this build costs beside that commit's (a pinned one)
  --case TEXT       of regress: only the cases with this in their names
  --most N          of regress: ends with code 1 if the median of a ratio is above N
  --before PATH     beside an older Sluice: a checkout that is built
  --publish         put a whole run into BENCHMARKS.md and bench/results/published.*
`;
const RESULTS = new URL('results/', import.meta.url);

const options = optionsGiven();
installDependencies();
installIn('bench');
build();
const redisProgram = findRedisServer();
options.with = builtPeers(options.with);

// Not before: these import what has just been installed.
const { machine } = await import('./lib/machine.mjs');
const { GENERATOR } = await import('./lib/load.mjs');
const { RedisServer } = await import('./lib/processes.mjs');
const { progressEnds } = await import('./lib/progress.mjs');
const { regressRatios } = await import('./lib/goals.mjs');
const { report } = await import('./lib/report.mjs');
const { publish } = await import('./lib/publish.mjs');

const redis = await RedisServer.start(redisProgram);
const results = {
  measuredAt: new Date().toISOString().slice(0, 10),
  command: publicCommand(process.argv.slice(2)),
  machine: machine(await redis.version(), GENERATOR, options),
};
const chosen = [];
for (const [name, [module, scenario]] of Object.entries(SCENARIOS)) {
  if (!options.only.includes(name)) continue;
  const { [scenario]: measure } = await import(`./scenarios/${module}.mjs`);
  chosen.push([name, measure]);
}
mkdirSync(RESULTS, { recursive: true });
for (const [name, measure] of chosen) {
  results[name] = await measure({ ...options, redis, redisProgram });
  // If a later one fails, these are not lost.
  write('latest');
}
await redis.stop();
progressEnds();

const text = report(results);
console.log(text);
if (options.publish) {
  write('published');
  publish(results);
  console.log('published; `npm run format` before you commit it');
}
const tooSlow = regressRatios(results.regress).filter(({ ratio }) => ratio > options.most);
for (const { figure } of tooSlow) console.error(`above ${options.most}: ${figure}`);
process.exit(tooSlow.length > 0 ? 1 : 0);

function write(name) {
  const json = JSON.stringify(results, undefined, 2);
  writeFileSync(new URL(`${name}.json`, RESULTS), `${json}\n`);
}

function optionsGiven() {
  try {
    const given = readOptions(process.argv.slice(2), {
      scenarios: Object.keys(SCENARIOS),
      peers: Object.keys(NATIVE_PEERS),
    });
    if (!given.help) return given;
    console.log(HELP);
    process.exit(0);
  } catch ({ message }) {
    console.error(`${message}\n\n${HELP}`);
    process.exit(2);
  }
}
