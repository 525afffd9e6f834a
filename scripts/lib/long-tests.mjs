import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

import { findRedisServer } from './find-redis.mjs';
import { jestCommand, jestEnvironment } from './jest.mjs';
import { build, installDependencies } from './prepare.mjs';
import { ROOT } from './run.mjs';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * The options with these names that this process was given, each with a value. Where help is asked for,
 * it is printed, and this process ends.
 */
export function longTestOptions(help, names) {
  const { values } = parseArgs({
    options: {
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(help);
    process.exit(0);
  }
  return values;
}

/**
 * Runs tests that `npm test` does not, as they take minutes, and ends this process with jest's code.
 * @param files a pattern of their paths
 * @param environment variables for them; those that are undefined are left out
 */
export async function runLongTests(files, environment) {
  installDependencies();
  build();
  const given = Object.entries(environment).filter(([, value]) => value !== undefined);
  const redis = findRedisServer();
  await runGroup('node', jestCommand('--runInBand', '--testMatch', files), {
    env: jestEnvironment({
      ...Object.fromEntries(given),
      SLUICE_TEST_REDIS_PROGRAM: redis,
      SLUICE_TEST_REDIS_SERVER: redis,
    }),
  });
}

/**
 * Runs a command in a process group of its own. Whatever it has started and not ended is killed when it
 * ends, and when this process is told to end: a server that is suspended heeds no other signal.
 */
async function runGroup(command, args, options) {
  const child = spawn(command, args, { cwd: ROOT, stdio: 'inherit', detached: true, ...options });
  const endGroup = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Nobody is left.
    }
  };
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      endGroup();
      process.exit(1);
    });
  }
  const [code] = await once(child, 'exit');
  endGroup();
  process.exit(code ?? 1);
}
