// Whether the CPU of a decision depends on the process, such as on where its memory lies, or on the machine at that
// moment. Many starts of one build, each measured several times in turns with others, pinned to one core or the other,
// and beside each measurement what the core takes for arithmetic and for reads from memory.
import { fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { end, track } from '../lib/children.mjs';
import { saturate } from '../lib/load.mjs';
import { RedisServer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { correlation, median, summary } from '../lib/statistics.mjs';

const STARTS = 40;
/** The number of processes that live at a time. */
const GROUP = 8;
const CORES = [0, 1];
const WARM_UP_SECONDS = 2;
const SECONDS = 1;
const PROBE = fileURLToPath(new URL('../lib/core-probe.mjs', import.meta.url));

/** @returns undefined where processes cannot be pinned */
export async function starts({ redisProgram, rounds }) {
  if (spawnSync('taskset', ['--version']).error) return undefined;
  const redis = await RedisServer.start(redisProgram);
  const probes = await Promise.all(CORES.map(startProbe));
  const processes = [];
  for (let first = 0; first < STARTS; first += GROUP) {
    const group = await startGroup(redis, first);
    for (let round = 0; round < rounds; round += 1) {
      progress(`starts: ${first + 1} to ${first + GROUP} of ${STARTS}, round ${round + 1}`);
      for (const process of group) process.runs.push(await measure(process, probes));
    }
    for (const { server } of group) await server.stop();
    processes.push(...group);
  }
  for (const probe of probes) await end(probe, 'SIGTERM');
  await redis.stop();
  return { onCores: CORES.map((core) => summarize(core, processes)) };
}

async function startGroup(redis, first) {
  const environment = { ...redis.settings, WINDOW_MILLIS: '1000', MAX_REQUESTS: '1000000000' };
  const group = [];
  for (let i = 0; i < GROUP; i += 1) {
    const server = await Server.start(`start ${first + i + 1}`, SLUICE, environment);
    const core = CORES[i % CORES.length];
    pin(server.child, core);
    await saturate(server, { name: 'hot', keys: 1, seconds: WARM_UP_SECONDS });
    group.push({ server, core, runs: [] });
  }
  return group;
}

async function startProbe(core) {
  const probe = fork(PROBE);
  track(probe, 'core probe');
  await once(probe, 'message');
  pin(probe, core);
  return probe;
}

/** All threads of a process. */
function pin({ pid }, core) {
  const { status } = spawnSync('taskset', ['-acp', String(core), String(pid)]);
  if (status !== 0) throw new Error(`process ${pid} was not pinned to core ${core}`);
}

async function measure({ server, core }, probes) {
  const probe = probes[CORES.indexOf(core)];
  probe.send('measure');
  const [{ stepNanos, readNanos }] = await once(probe, 'message');
  const cpu = await server.cpuMicros();
  const { answers } = await saturate(server, { name: 'hot', keys: 1, seconds: SECONDS });
  return { micros: ((await server.cpuMicros()) - cpu) / answers, stepNanos, readNanos };
}

function summarize(core, processes) {
  const own = processes.filter((each) => each.core === core);
  const medians = own.map(({ runs }) => median(runs.map(({ micros }) => micros)));
  const all = own.flatMap(({ runs }) => runs);
  const of = (figure) => all.map((run) => run[figure]);
  return {
    core,
    processes: own.length,
    micros: summary(of('micros')),
    betweenProcesses: summary(medians),
    withinProcesses: median(own.map(({ runs }) => spreadOf(runs.map(({ micros }) => micros)))),
    readNanos: summary(of('readNanos')),
    stepNanos: summary(of('stepNanos')),
    withReads: correlation(of('micros'), of('readNanos')),
    // If the process decided, each would be as fast in the second half of its rounds as in the first.
    betweenHalves: correlation(own.map(halfOf(0)), own.map(halfOf(1))),
    runs: own.map(({ runs }) => runs.map(({ micros }) => micros)),
  };
}

/** The slowest round of a process to its fastest. */
const spreadOf = (values) => Math.max(...values) / Math.min(...values);

function halfOf(half) {
  return ({ runs }) => {
    const middle = runs.length >> 1;
    const rounds = half === 0 ? runs.slice(0, middle) : runs.slice(middle);
    return median(rounds.map(({ micros }) => micros));
  };
}
