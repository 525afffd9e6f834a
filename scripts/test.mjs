// `npm test`: completes the set-up of a fresh clone, then checks style, types and behaviour. Arguments go
// to jest, so `npm test -- queue` runs the tests whose path contains "queue". With `--get-tools`, or CI=true in
// the environment, the programs that tests need are installed, built and started, and all tests run to their full
// extent. Otherwise tests run with the programs that exist, and to a quick extent. `--full` runs the tests that need no
// tools to their full extent.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';

import { FULL_EXTENT, jestCommand, jestEnvironment, LONG_TESTS } from './lib/jest.mjs';
import { installDependencies } from './lib/prepare.mjs';
import { ROOT, runTogether } from './lib/run.mjs';
import { startDeployEnvironment } from './lib/start-deploy-environment.mjs';

const DEPLOY_TESTS = 'test/deploy/';
const GET_TOOLS = '--get-tools';
const FULL = '--full';
/** More than cores, since each worker waits for its Redis and its replicas half of the time, and some for real time. */
const WORKERS = String(availableParallelism() + 2);
/** Coverage of the code in the tests' own processes, without a threshold. It takes time, so only CI measures it. */
const COVERAGE = [
  '--coverage',
  ...['--coverageReporters', 'text-summary'],
  ...['--collectCoverageFrom', 'src/**/*.ts'],
];

const isCi = process.env.CI === 'true';
const get = isCi || process.argv.includes(GET_TOOLS);
const isFull = get || process.argv.includes(FULL);
const given = process.argv.slice(2).filter((word) => word !== GET_TOOLS && word !== FULL);
installDependencies();
const { findRedis } = await import('./lib/find-redis.mjs');
const redis = await findRedis({ get });
const needsDeploy =
  given.length > 0 ? includesDeployTests(given) : get || !process.argv.includes(FULL);
const deploy = needsDeploy ? startDeployEnvironment({ get }) : undefined;
// Each of these commands uses one core.
await runTogether(
  ['npm', 'run', '--silent', 'lint'],
  ['npm', 'run', '--silent', 'typecheck'],
  [process.execPath, 'scripts/build.mjs'],
);

if (given.length > 0) {
  await jest(given, redis, await deploy?.ready);
} else {
  const others = [DEPLOY_TESTS, ...(isFull ? [] : [LONG_TESTS])];
  const options = ['--maxWorkers', WORKERS, ...(isCi ? COVERAGE : [])];
  await jest([...options, '--testPathIgnorePatterns', ...others], redis);
  if (deploy) {
    const some = isFull ? [] : ['--testPathIgnorePatterns', LONG_TESTS];
    // These tests wait more than they work, so several run at a time.
    const all = ['--maxWorkers', '3', '--testPathPatterns', DEPLOY_TESTS, ...some];
    await jest(all, redis, await deploy.ready);
  }
}
const isClean = (await deploy?.end()) ?? true;
// A connection to testcontainers' reaper would keep this process alive.
process.exit(isClean ? 0 : 1);

function includesDeployTests(args) {
  const list = jestCommand('--listTests', ...args);
  const options = { cwd: ROOT, encoding: 'utf8', env: jestEnvironment({}) };
  return (spawnSync('node', list, options).stdout ?? '').includes(DEPLOY_TESTS);
}

/** Runs jest without blocking this process, unlike `run`. Ends this process if jest fails. */
async function jest(args, redis, { environment = {}, enter = [] } = {}) {
  const [program, ...words] = [...enter, 'node', ...jestCommand(...args)];
  const extent = isFull ? FULL_EXTENT : {};
  const child = spawn(program, words, {
    cwd: ROOT,
    stdio: 'inherit',
    env: jestEnvironment({ ...extent, ...redis, ...environment }),
  });
  const [code] = await once(child, 'exit');
  if (code === 0) return;
  await deploy?.end();
  process.exit(code ?? 1);
}
