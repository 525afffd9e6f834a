import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

import { findRedisServer } from './find-redis.mjs';
import { jestCommand, jestEnvironment } from './jest.mjs';
import { build, installDependencies } from './prepare.mjs';
import { ROOT } from './run.mjs';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * The values of this process's options with these names, and whether each of `flags` is given. The option `--help` prints
 * the help, and ends this process.
 */
export function longTestOptions(help, names, flags = []) {
  const { values } = parseArgs({
    options: {
      ...Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
      ...Object.fromEntries(flags.map((name) => [name, { type: 'boolean', default: false }])),
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
 * Runs tests that take minutes, which `npm test` does not run, and ends this process with jest's code.
 * @param files a pattern of their paths
 * @param environment variables for them; undefined ones are ignored
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
 * Runs a command in a process group of its own. The rest of the group is killed when the command ends, or
 * when a signal ends this process. A suspended server ends only by SIGKILL.
 */
async function runGroup(command, args, options) {
  const child = spawn(command, args, { cwd: ROOT, stdio: 'inherit', detached: true, ...options });
  const endGroup = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The group has ended.
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
