// What this build costs beside another commit: its CPU and Redis's for each decision, in turns, as ratios of each round.
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from '../../scripts/lib/free-port.mjs';
import { SINGLE_CHECK } from '../lib/asking.mjs';
import { builtAt, ROOT } from '../lib/base-build.mjs';
import { accepts } from '../lib/children.mjs';
import { flows } from '../lib/flows.mjs';
import { countInstructions } from '../lib/instructions.mjs';
import { saturate } from '../lib/load.mjs';
import { Server, SLUICE } from '../lib/processes.mjs';
import { startProgram, withCpu } from '../lib/programs.mjs';
import { progress } from '../lib/progress.mjs';
import { callRls } from '../lib/rls-load.mjs';
import { ratios, summary } from '../lib/statistics.mjs';

const WARM_UP_SECONDS = 2;
/** Before each run. While the other side runs, keys end, and the first check of each costs more: for one side of each round only. */
const WAKE_UP_SECONDS = 1;
/** The commit in which lanes and groups work. */
const HAS_LISTS = '97fa8132';
/** The commit in which settings choose an algorithm. */
const HAS_ALGORITHMS = '085519ae';
/** The commit in which places are kept. */
const HAS_KEPT_PLACES = '5a38210e';
const HOUR = 3_600_000;

const checks = (keys, query = '') => ({
  run: (program, { seconds }) =>
    saturate(program.server, {
      name: 'key',
      keys,
      seconds,
      asking: { ...SINGLE_CHECK, path: `/rate/KEY${query}` },
    }),
});
/** 64 callers; the maximum is 1, so that those who share a key wait for each other. */
const waits = (keys, flow) => ({
  settings: { MAX_REQUESTS: '1', WINDOW_MILLIS: String(HOUR), MAX_REQUESTS_IN_QUEUE: '100' },
  run: (program, { seconds }) => flows(program.server, { seconds, keys, flow }),
});
const waitAndRelease = (query) => async (call, path, caller) => {
  const { request_id: id } = await call('POST', `${path}?canWait=true${query(caller)}`);
  await call('DELETE', `${path}/${id}`);
};
const rules = (queue) => ({
  rules: { keys: [{ key_pattern: 'key-.*', key_pattern_is_regex: true, queue }] },
  since: HAS_LISTS,
});

/** `embedded`: without Redis. `since`: the commit from which on it can be measured. */
const CASES = [
  { name: 'plain, embedded, one key', embedded: true, ...checks(1) },
  { name: 'plain, embedded, 5,000 keys', embedded: true, ...checks(5000) },
  { name: 'plain, one key', ...checks(1) },
  { name: 'plain, 5,000 keys', ...checks(5000) },
  { name: '2 hits', ...checks(5000, '?hits=2') },
  {
    name: 'sliding window',
    ...checks(5000),
    settings: { ALGORITHM: 'sliding_window' },
    since: HAS_ALGORITHMS,
  },
  {
    name: 'token bucket',
    ...checks(5000),
    settings: { ALGORITHM: 'token_bucket', BURST: '1000000' },
    since: HAS_ALGORITHMS,
  },
  {
    name: 'hold, renew, release',
    run: (program, { seconds }) =>
      flows(program.server, {
        seconds,
        keys: 64,
        flow: async (call, path) => {
          const { request_id: id } = await call('POST', `${path}?holdMillis=60000`);
          await call('PUT', `${path}/${id}?holdMillis=60000`);
          await call('DELETE', `${path}/${id}`);
        },
      }),
  },
  {
    name: 'wait, grant, release',
    ...waits(
      16,
      waitAndRelease(() => ''),
    ),
  },
  {
    name: 'the same, in 2 lanes',
    ...waits(
      16,
      waitAndRelease((caller) => `&lane=${caller % 32 < 16 ? 'fast' : 'slow'}`),
    ),
    ...rules({ lanes: [{ name: 'fast', head_start_millis: 1000 }, { name: 'slow' }] }),
  },
  {
    name: 'the same, in 64 groups',
    ...waits(
      1,
      waitAndRelease((caller) => `&group=tenant-${caller}`),
    ),
    ...rules({ fair: true }),
  },
  {
    name: 'the same, with kept places',
    ...waits(
      16,
      waitAndRelease(() => `&keepMillis=60000&requestId=${randomUUID()}`),
    ),
    since: HAS_KEPT_PLACES,
  },
  {
    name: 'gRPC, one key',
    hasGrpc: true,
    run: (program, { seconds }) => callRls(program.server.rlsPort, { keys: 1, seconds }),
  },
  {
    name: 'gRPC, 5,000 keys',
    hasGrpc: true,
    run: (program, { seconds }) => callRls(program.server.rlsPort, { keys: 5000, seconds }),
  },
];

export async function regress(options) {
  const base = builtAt(options.base);
  const results = [];
  for (const one of CASES.filter(({ name }) => name.includes(options.ofCases))) {
    if (one.since !== undefined && !base.has(one.since)) continue;
    results.push(await measureCase(one, base, options));
  }
  const folders = { base: base.folder, now: ROOT };
  const instructions = results.some(({ name }) => name.startsWith('plain'))
    ? await countInstructions(folders, options.redisProgram)
    : undefined;
  return { base: base.hash.slice(0, 8), cases: results, instructions };
}

async function measureCase(one, base, { redisProgram, rounds, seconds }) {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  const sides = [];
  for (const [name, file] of [
    ['base', join(base.folder, 'dist', 'main.js')],
    ['now', SLUICE],
  ]) {
    const program = await startProgram(programOf(one, name, file, folder), { redisProgram });
    sides.push({ program, runs: [] });
  }
  for (const { program } of sides) {
    progress(`regress, ${one.name}: ${program.name} warms up`);
    await one.run(program, { seconds: WARM_UP_SECONDS });
  }
  for (let round = 0; round < rounds; round += 1) {
    progress(`regress, ${one.name}: round ${round + 1} of ${rounds}`);
    // Each goes first in every other round: what drifts during a round favours nobody.
    for (const side of round % 2 === 0 ? sides : [...sides].reverse()) {
      await one.run(side.program, { seconds: WAKE_UP_SECONDS });
      side.runs.push(await withCpu(side.program, () => one.run(side.program, { seconds })));
    }
  }
  await Promise.all(sides.map(({ program }) => program.stop()));
  rmSync(folder, { recursive: true });
  const [before, now] = sides.map(({ runs }) => runs);
  const compare = (figure) => {
    const [values, others] = [now, before].map((runs) => runs.map((run) => run[figure]));
    return { now: summary(values), base: summary(others), ratio: summary(ratios(values, others)) };
  };
  return {
    name: one.name,
    cpuMicros: compare('cpuMicros'),
    redisCpuMicros: one.embedded ? undefined : compare('redisCpuMicros'),
  };
}

function programOf({ embedded = false, hasGrpc, settings, rules: ofKeys }, name, file, folder) {
  return {
    name,
    usesRedis: !embedded,
    start: async ({ redis }) => {
      const rlsPort = hasGrpc ? await freePort() : undefined;
      const config = join(folder, 'rules.json');
      if (ofKeys) writeFileSync(config, JSON.stringify(ofKeys));
      const server = await Server.start(name, file, {
        MAX_REQUESTS: '1000000000',
        ...settings,
        ...(redis && { REDIS_URL: redis.url }),
        ...(ofKeys && { CONFIG_FILE: config }),
        ...(hasGrpc && { GRPC_PORT: String(rlsPort) }),
      });
      if (hasGrpc) await accepts(rlsPort);
      return Object.assign(server, { rlsPort });
    },
  };
}
