// `npm test`: sets up what a fresh clone lacks, then checks style, types and behaviour. Arguments go
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
  // They wait more than they work, so several at a time.
  await jest(['--maxWorkers', '3', '--testPathPatterns', DEPLOY_TESTS], {
    ...redis,
    ...(await deploy.ready),
  });
}
await deploy?.end();
// The connection to testcontainers' reaper, where there is one, would keep this process.
process.exit(0);

/** Runs jest, not to be waited for by everything else as `run` is; ends this process where it fails. */
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
