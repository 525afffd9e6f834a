// `npm test`: completes the set-up of a fresh clone, then checks behaviour, and beside it style and types. Arguments go
// to jest, so `npm test -- queue` runs the tests whose path contains "queue". With `--get-tools`, or CI=true in
// the environment, the programs that tests need are installed, built and started, and all tests run to their full
// extent. Otherwise tests run with the programs that exist, and to a quick extent. `--full` runs the tests that need no
// tools to their full extent.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';

import { FULL_EXTENT, jestCommand, jestEnvironment, LONG_TESTS } from './lib/jest.mjs';
import { build, installDependencies } from './lib/prepare.mjs';
import { ROOT, runBeside } from './lib/run.mjs';
import { startDeployEnvironment } from './lib/start-deploy-environment.mjs';

const DEPLOY_TESTS = 'test/deploy/';
const GET_TOOLS = '--get-tools';
const FULL = '--full';
/** More than cores, since each worker waits for its Redis and its replicas half of the time, and some for real time. */
const WORKERS = String(availableParallelism() + 1);
/** These wait more than they work, for other programs and for browsers. */
const DEPLOY_WORKERS = '2';

const get = process.env.CI === 'true' || process.argv.includes(GET_TOOLS);
const isFull = get || process.argv.includes(FULL);
const given = process.argv.slice(2).filter((word) => word !== GET_TOOLS && word !== FULL);
installDependencies();
const { findRedis } = await import('./lib/find-redis.mjs');
const redis = await findRedis({ get });
const needsDeploy =
  given.length > 0 ? includesDeployTests(given) : get || !process.argv.includes(FULL);
const deploy = needsDeploy ? startDeployEnvironment({ get }) : undefined;
build();
// Tests wait at times: for Redis, for other processes, or until time has passed.
const checked = runBeside(['typecheck', 'lint']);
/** Of two jests on one terminal neither may move its cursor. */
const beside = { ...redis, TERM: 'dumb' };

const codes = await Promise.all(given.length > 0 ? [testGiven()] : [testOthers(), testDeploy()]);
await end(Math.max(...codes));

async function testGiven() {
  return jest(given, redis, await deploy?.ready);
}

function testOthers() {
  const ignored = [DEPLOY_TESTS, ...(isFull ? [] : [LONG_TESTS])];
  return jest(['--maxWorkers', WORKERS, '--testPathIgnorePatterns', ...ignored], beside);
}

/** Beside the others, from when its tools are there. */
async function testDeploy() {
  if (!deploy) return 0;
  const tools = await deploy.ready.catch((error) => console.error(error.message));
  if (!tools) return 1;
  const some = isFull ? [] : ['--testPathIgnorePatterns', LONG_TESTS];
  const all = ['--maxWorkers', DEPLOY_WORKERS, '--testPathPatterns', DEPLOY_TESTS, ...some];
  return jest(all, beside, tools);
}

function includesDeployTests(args) {
  const list = jestCommand('--listTests', ...args);
  const options = { cwd: ROOT, encoding: 'utf8', env: jestEnvironment({}) };
  return (spawnSync('node', list, options).stdout ?? '').includes(DEPLOY_TESTS);
}

/** Runs jest without blocking this process, unlike `run`. @returns its exit code */
async function jest(args, redis, { environment = {}, enter = [] } = {}) {
  const [program, ...words] = [...enter, 'node', ...jestCommand(...args)];
  const extent = isFull ? FULL_EXTENT : {};
  const child = spawn(program, words, {
    cwd: ROOT,
    stdio: 'inherit',
    env: jestEnvironment({ ...extent, ...redis, ...environment }),
  });
  const [code] = await once(child, 'exit');
  return code ?? 1;
}

/** Ends this process with a code, or with 1 if a check has failed or something is left. */
async function end(code) {
  const failed = await checked;
  for (const name of failed) console.error(`npm run ${name} has failed, see above`);
  const isClean = (await deploy?.end()) ?? true;
  // A connection to testcontainers' reaper would keep this process alive.
  process.exit(code || (isClean && failed.length === 0 ? 0 : 1));
}
