import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { jestEnvironment } from '../lib/jest.mjs';

/** A test that waits in vain should fail soon, but none that computes. A whole group that takes longer than its limit hangs. */
const TEST_TIMEOUT_MILLIS = 60_000;
const GROUP_TIMEOUT_MILLIS = 5 * 60_000;

/** The tests that cover a part, quick ones first. None of them runs the build. */
const GROUPS = [
  {
    of: /^lua\//,
    tests: [
      ['test/redis/lua', 'test/redis/state-form', 'test/unit/redis/scripts'],
      ['test/redis/behaviour'],
      ['test/redis/simulation', 'test/deploy/topologies/cluster-calls'],
    ],
  },
  {
    of: /^src\/limiter\//,
    tests: [
      ['test/unit/limiter', 'test/redis/behaviour'],
      ['test/service/http', 'test/service/grpc'],
      ['test/unit'],
    ],
  },
  {
    of: /^src\/redis\//,
    tests: [
      ['test/unit/redis'],
      ['test/redis/behaviour', 'test/redis/lua', 'test/redis/connections', 'test/redis/replica-'],
      [
        'test/redis/simulation',
        'test/service/http/.*outage',
        'test/service/topologies',
        'test/deploy/topologies',
      ],
      ['test/unit'],
    ],
  },
];

/**
 * Runs the tests of a changed file, until one fails.
 * @param folder the copy of the project with the change
 * @returns the first line about a failure, or undefined if no test has failed
 */
export async function judge(folder, file, redis) {
  for (const tests of GROUPS.find(({ of }) => of.test(file)).tests) {
    const failure = await run(folder, tests, redis);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

/** Runs all of these tests without any change. @returns the first line about a failure */
export function judgeUnchanged(folder, redis) {
  return run(folder, [...new Set(GROUPS.flatMap(({ tests }) => tests.flat()))], redis, Infinity);
}

/** The tests that run, if any. */
let running;
process.on('exit', () => {
  if (running) end(running);
});

async function run(folder, tests, redis, limitMillis = GROUP_TIMEOUT_MILLIS) {
  const reporters = ['default', join(folder, 'scripts', 'mutations', 'first-failure.mjs')];
  const options = [
    // Another option has to follow: this one takes all words up to the next.
    ...['--reporters', ...reporters],
    ...['--bail', '--maxWorkers', '3', '--testTimeout', String(TEST_TIMEOUT_MILLIS)],
  ];
  const child = spawn(
    'node',
    ['node_modules/jest/bin/jest.js', '--cacheDirectory', '.jest', ...options, ...tests],
    {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'pipe'],
      // In a group of its own, so that the servers of aborted tests also end.
      detached: true,
      env: jestEnvironment({ SLUICE_TEST_REDIS_PROGRAM: redis, SLUICE_TEST_REDIS_SERVER: redis }),
    },
  );
  running = child;
  const exit = once(child, 'exit');
  let failure;
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (!/^\s+● /.test(line) || failure !== undefined) return;
    failure = line.trim();
    end(child);
  });
  let isLate = false;
  const timer =
    limitMillis < Infinity &&
    setTimeout(() => {
      isLate = true;
      end(child);
    }, limitMillis);
  const [code] = await exit;
  clearTimeout(timer);
  end(child);
  running = undefined;
  if (isLate) return 'the tests hang';
  return code === 0 ? undefined : (failure ?? 'the tests fail');
}

function end(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // The group has ended.
  }
}
