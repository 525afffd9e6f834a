// `npm run test:one -- FILE`: one file of tests, or several, without lint and types. It finds a Redis and builds only if
// tests of that folder need these. Other arguments go to jest.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { goCommandLine } from './lib/go-command-line.mjs';
import { jestCommand, jestEnvironment } from './lib/jest.mjs';
import { build, installDependencies } from './lib/prepare.mjs';
import { ROOT, run, stop } from './lib/run.mjs';

/** By the table of folders in CONTRIBUTING.md: other tests need a Redis, and those that are not here a build as well. */
const WITHOUT_REDIS = 'test/unit/';
const OF_COMMAND_LINE = ['test/service/client/cli/', 'test/service/docs/', 'test/deploy/pages'];
const WITHOUT_BUILD = [WITHOUT_REDIS, 'test/redis/'];

const words = process.argv.slice(2);
const files = words.filter((word) => word.endsWith('.test.ts'));
const missing = files.find((file) => !existsSync(join(ROOT, file)));
if (files.length === 0) stop('Usage: npm run test:one -- test/.../NAME.test.ts [options of jest]');
if (missing) stop(`There is no ${missing}.`);

installDependencies();
if (!files.every((file) => WITHOUT_BUILD.some((folder) => file.startsWith(folder)))) build();
const commandLine = files.some((file) => OF_COMMAND_LINE.some((path) => file.startsWith(path)))
  ? goCommandLine()
  : {};
run('node', jestCommand(...words), {
  env: jestEnvironment({ ...(await redis()), ...commandLine }),
});
// A connection to testcontainers' reaper would keep this process alive.
process.exit(0);

async function redis() {
  if (files.every((file) => file.startsWith(WITHOUT_REDIS))) return {};
  const { findRedis } = await import('./lib/find-redis.mjs');
  return findRedis({ get: false });
}
