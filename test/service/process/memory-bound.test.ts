import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { checkMany } from '../../support/bulk-client.js';
import { send } from '../../support/http-client.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';

const DIST = fileURLToPath(new URL('../../../dist', import.meta.url));
const execute = promisify(execFile);
afterEach(killReplicas);

/**
 * Checks keys of long windows in turn, so often that the process would end if it kept all ids. Then ends the windows.
 * Prints the approvals and errors before and after the windows end.
 */
const FLOOD = `
  import { getHeapStatistics } from 'node:v8';
  import { ownLimit } from '${DIST}/limiter/limits.js';
  import { MemoryLimiter } from '${DIST}/limiter/memory/memory-limiter.js';
  import { memoryIn } from '${DIST}/limiter/memory/memory-budget.js';

  let now = 0;
  const timers = [];
  const clock = { now: () => now, after: (_millis, callback) => (timers.push(callback), () => {}) };
  const policy = { limits: [ownLimit(3_160_000, 1e9)], maxRequestsInQueue: 0 };
  const maxBytes = memoryIn(getHeapStatistics().heap_size_limit, process.execArgv.join(' '));
  const limiter = new MemoryLimiter({ current: { policyOf: () => policy } }, clock, { maxBytes });

  const CHECKS = 160_000;
  const flood = async () => {
    let approved = 0;
    const errors = {};
    for (let begun = 0; begun < CHECKS; begun += 1000) {
      const checks = Array.from({ length: 1000 }, (_, i) =>
        limiter.check({ key: 'key-' + ((begun + i) % 1000), canWait: false }),
      );
      for (const result of await Promise.allSettled(checks)) {
        if (result.status === 'fulfilled') approved += 1;
        else errors[result.reason.reason] = (errors[result.reason.reason] ?? 0) + 1;
      }
    }
    return { approved, errors };
  };
  const first = await flood();
  const condition = await limiter.ping();
  now += policy.limits[0].windowMillis;
  for (const timer of timers.splice(0)) timer();
  console.log(JSON.stringify([first, condition, await flood()]));
`;

/** The bytes that are in use. */
const USED = `
  const used = () => {
    // The first frees objects, a later one the buffers that they had.
    for (let i = 0; i < 3; i += 1) gc();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
`;

/** Prints how many bytes a key with one approval takes. */
const MEASURE = `
  import { ownLimit } from '${DIST}/limiter/limits.js';
  import { MemoryLimiter } from '${DIST}/limiter/memory/memory-limiter.js';

  const KEYS = 20_000;
  const clock = { now: () => 0, after: () => () => {} };
  const policy = { limits: [ownLimit(3_600_000, 10)], maxRequestsInQueue: 0 };
  const limiter = new MemoryLimiter({ current: { policyOf: () => policy } }, clock);
  ${USED}
  const before = used();
  for (let key = 0; key < KEYS; key += 1) await limiter.check({ key: 'key-number-' + key, canWait: false });
  console.log((used() - before) / KEYS, limiter.waiting);
`;

test('a key with an approval takes less memory than the bound counts for it', async () => {
  const node = ['--expose-gc', '--input-type=module', '-e', MEASURE];
  const { stdout } = await execute(process.execPath, node);
  expect(Number(stdout.split(' ')[0])).toBeLessThan(1320);
});

test('a process with a small heap survives any number of checks in a long window', async () => {
  const node = ['--max-old-space-size=32', '--input-type=module', '-e', FLOOD];
  const { stdout } = await execute(process.execPath, node);
  const [first, condition, second] = JSON.parse(stdout) as [Flooded, string, Flooded];

  // Each approval takes at most 30 bytes, besides the keys.
  expect(first.approved).toBeGreaterThan(100_000);
  expect(first).toEqual({
    approved: first.approved,
    errors: { store_full: 160_000 - first.approved },
  });
  expect(condition).toBe('full');
  expect(second).toEqual(first);
});

interface Flooded {
  readonly approved: number;
  readonly errors: Readonly<Record<string, number>>;
}

test('a service with a small heap survives checks of new keys, and says that it is full', async () => {
  const { url } = await startReplica({
    NODE_OPTIONS: '--max-old-space-size=64',
    WINDOW_MILLIS: '3600000',
  });
  const prefix = uniqueKey();
  const statuses = new Set<number>();
  for (let call = 0; call < 40; call += 1) {
    const keys = Array.from({ length: 1000 }, (_, i) => ({ key: `${prefix}-${call}-${i}` }));
    for (const { status } of await checkMany(url, keys)) statuses.add(status);
  }

  expect(statuses).toEqual(new Set([200, 503]));
  const { status, text } = await send(url, 'GET', '/readyz');
  expect([status, text]).toEqual([200, expect.stringContaining('store full')]);
  // Known keys are still decided.
  const [known] = await checkMany(url, [{ key: `${prefix}-0-0` }]);
  expect(known).toMatchObject({ status: 200 });
});

const COUNT = `
  import { CountedKeys } from '${DIST}/service/fleet/counted-keys.js';

  let time = 0;
  let due;
  const clock = { now: () => time, after: (millis, callback) => ((due = callback), () => {}) };
  const totals = { approved: 0, denied: 0, shadowed: 0, withdrawn: 0, failed: 0 };
  const keys = new CountedKeys({ waiting: () => 0 }, clock, async () => totals);
  keys.start();
  ${USED}
  const before = used();
  for (let step = 0; step < 500; step += 1) {
    for (let i = 0; i < 300; i += 1) keys.record('busy ' + i, { outcome: 'approved' }, 1, false);
    for (let i = 0; i < 200; i += 1) {
      keys.record('other ' + (step * 200 + i), { outcome: 'approved' }, 1, false);
    }
    time += 2000;
    due();
    await undefined;
  }
  console.log(used() - before, keys.stepsOf('busy 7').length);
`;

test('the counts of 100,000 keys take less than 6 MB', async () => {
  const node = ['--expose-gc', '--input-type=module', '-e', COUNT];
  const { stdout } = await execute(process.execPath, node);
  const [bytes, steps] = stdout.split(' ').map(Number);
  expect(bytes).toBeLessThan(6_000_000);
  expect(steps).toBe(450);
});
