// `npm test`: completes the set-up of a fresh clone, then checks style, types and behaviour. Arguments go
// to jest, so `npm test -- queue` runs the tests whose path contains "queue". With `--get-tools`, or CI=true in
// the environment, the programs that tests need are installed, built and started. Otherwise tests run with the
// programs that exist.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';

import { jestCommand, jestEnvironment } from './lib/jest.mjs';
import { build, installDependencies } from './lib/prepare.mjs';
import { ROOT, run } from './lib/run.mjs';
import { startDeployEnvironment } from './lib/start-deploy-environment.mjs';

const DEPLOY_TESTS = 'test/deploy/';
const GET_TOOLS = '--get-tools';
/** One more than cores: each waits for its Redis and its replicas half of the time. */
const WORKERS = String(availableParallelism() + 1);

const given = process.argv.slice(2).filter((word) => word !== GET_TOOLS);
const get = process.env.CI === 'true' || process.argv.includes(GET_TOOLS);
installDependencies();
const { findRedis } = await import('./lib/find-redis.mjs');
const redis = await findRedis({ get });
const deploy = includesDeployTests(given) ? startDeployEnvironment({ get }) : undefined;
run('npm', ['run', '--silent', 'lint']);
run('npm', ['run', '--silent', 'typecheck']);
build();

if (given.length > 0) {
  await jest(given, redis, await deploy?.ready);
} else {
  await jest(['--maxWorkers', WORKERS, '--testPathIgnorePatterns', DEPLOY_TESTS], redis);
  // These tests wait more than they work, so several run at a time.
  await jest(['--maxWorkers', '3', '--testPathPatterns', DEPLOY_TESTS], redis, await deploy.ready);
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
  const child = spawn(program, words, {
    cwd: ROOT,
    stdio: 'inherit',
    env: jestEnvironment({ ...redis, ...environment }),
  });
  const [code] = await once(child, 'exit');
  if (code === 0) return;
  await deploy?.end();
  process.exit(code ?? 1);
}
