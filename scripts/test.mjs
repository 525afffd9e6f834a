// `npm test`: completes the set-up of a fresh clone, then checks style, types and behaviour. Arguments go
// to jest, so `npm test -- queue` runs the tests whose path contains "queue".
import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { jestCommand, jestEnvironment } from './lib/jest.mjs';
import { build, installDependencies } from './lib/prepare.mjs';
import { ROOT, run } from './lib/run.mjs';
import { startDeployEnvironment } from './lib/start-deploy-environment.mjs';

const DEPLOY_TESTS = 'test/deploy/';

const given = process.argv.slice(2);
installDependencies();
run('npm', ['run', '--silent', 'lint']);
run('npm', ['run', '--silent', 'typecheck']);
build();

const { findRedis } = await import('./lib/find-redis.mjs');
const redis = await findRedis();
const isAboutDeploying = given.length === 0 || given.some((word) => word.includes('deploy'));
const deploy = isAboutDeploying ? startDeployEnvironment() : undefined;
if (given.length > 0) {
  await jest(given, { ...redis, ...(await deploy?.ready) });
} else {
  await jest(['--testPathIgnorePatterns', DEPLOY_TESTS], redis);
  // These tests wait more than they work, so several run at a time.
  await jest(['--maxWorkers', '3', '--testPathPatterns', DEPLOY_TESTS], {
    ...redis,
    ...(await deploy.ready),
  });
}
await deploy?.end();
// A connection to testcontainers' reaper would keep this process alive.
process.exit(0);

/** Runs jest without blocking this process, unlike `run`. Ends this process if jest fails. */
async function jest(args, environment) {
  const child = spawn('node', jestCommand(...args), {
    cwd: ROOT,
    stdio: 'inherit',
    env: jestEnvironment(environment),
  });
  const [code] = await once(child, 'exit');
  if (code === 0) return;
  await deploy?.end();
  process.exit(code ?? 1);
}
