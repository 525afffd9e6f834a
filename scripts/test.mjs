// `npm test`: completes the set-up of a fresh clone, then runs the tests that a person runs before a commit. Arguments
// go to jest, so `npm test -- queue` runs the tests whose path contains "queue". With `--deploy` it gets the programs
// that the tests in test/deploy need, and runs these; with `--long`, all tests to their full extent.
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

import { goCommandLine } from './lib/go-command-line.mjs';
import { FULL_EXTENT, jestCommand, jestEnvironment, LONG_TESTS } from './lib/jest.mjs';
import { build, installDependencies } from './lib/prepare.mjs';
import { ROOT } from './lib/run.mjs';
import { startDeployEnvironment } from './lib/start-deploy-environment.mjs';

const DEPLOY_TESTS = 'test/deploy/';
const MODES = ['--deploy', '--long'];
/** More than cores, since each worker waits for its Redis and its replicas half of the time, and some for real time. */
const WORKERS = ['--maxWorkers', String(availableParallelism() * 2)];
/** These wait more than they work, for other programs and for browsers. */
const DEPLOY_WORKERS = ['--maxWorkers', '2'];
const BUT = '--testPathIgnorePatterns';

const mode = MODES.find((name) => process.argv.includes(name));
const given = process.argv.slice(2).filter((word) => !MODES.includes(word));
const isLong = mode === '--long';
const get = mode !== undefined;
installDependencies();
const { findRedis } = await import('./lib/find-redis.mjs');
const redis = await findRedis({ get });
const deploy =
  get || includesDeployTests(given) ? startDeployEnvironment({ get, isLong }) : undefined;
build();
const commandLine = goCommandLine();

let code = 0;
if (given.length > 0) code = await run(given, deploy);
else {
  if (mode !== '--deploy') {
    code = await run([...WORKERS, BUT, DEPLOY_TESTS, ...(isLong ? [] : [LONG_TESTS])]);
  }
  if (deploy) {
    const tests = [...DEPLOY_WORKERS, '--testPathPatterns', DEPLOY_TESTS];
    code = (await run([...tests, ...(isLong ? [] : [BUT, LONG_TESTS])], deploy)) || code;
  }
}
const isClean = (await deploy?.end()) ?? true;
// A connection to testcontainers' reaper would keep this process alive.
process.exit(code || (isClean ? 0 : 1));

function includesDeployTests(args) {
  if (args.length === 0) return false;
  const list = jestCommand('--listTests', ...args);
  const options = { cwd: ROOT, encoding: 'utf8', env: jestEnvironment({}) };
  return (spawnSync('node', list, options).stdout ?? '').includes(DEPLOY_TESTS);
}

/** Runs jest, with the programs of `programs` when they are there. @returns its exit code */
async function run(args, programs) {
  const found = await programs?.ready.catch((error) => console.error(error.message));
  if (programs && !found) return 1;
  const { environment = {}, enter = [] } = found ?? {};
  const [program, ...words] = [...enter, 'node', ...jestCommand(...args)];
  const env = { ...(isLong ? FULL_EXTENT : {}), ...redis, ...commandLine, ...environment };
  return (
    spawnSync(program, words, { cwd: ROOT, stdio: 'inherit', env: jestEnvironment(env) }).status ??
    1
  );
}
