import { setTimeout as delay } from 'node:timers/promises';

import { type RedisProcess, stopRedisProcesses } from '../../redis-process.js';
import { killReplicas } from '../../replica-process.js';
import { wrongAnswers } from '../checks/answers.js';
import { lateAnswers } from '../checks/bounds.js';
import { leftovers } from '../checks/leftovers.js';
import { compare } from '../checks/replica-leftovers.js';
import { misbehaviour } from '../checks/replicas.js';
import { Fleet } from '../fleet.js';
import { Ledger } from '../ledger.js';
import { REPLICA_SETTINGS } from '../limits.js';
import { Load } from '../load.js';
import { Random } from '../random.js';
import { read, READABLE, type Reading } from '../replica-reading.js';
import { Standstills } from '../standstills.js';
import { startStandalone } from '../topologies/start-topology.js';
import type { Topology } from '../topologies/topology.js';
import { within } from '../within.js';

const REPLICAS = 3;
const QUARTERS = 4;
/** By then the code has been compiled and the caches are filled. */
const WARM_UP_MILLIS = 3000;
const ANSWERED_WITHIN_MILLIS = 60_000;

export interface SoakReport {
  readonly seconds: number;
  readonly requests: number;
  /** At the start, after each quarter, and when all is quiet again. */
  readonly samples: readonly Sample[];
  readonly violations: readonly string[];
}

/** Runs the load without faults, and looks at what piles up. */
export async function runSoak(seed: number, seconds: number): Promise<SoakReport> {
  const topology = await startStandalone(REPLICAS);
  try {
    return await soak(topology, new Random(seed), seconds);
  } finally {
    await killReplicas();
    await topology.stop();
    await stopRedisProcesses();
  }
}

async function soak(topology: Topology, random: Random, seconds: number): Promise<SoakReport> {
  const fleet = await Fleet.start(REPLICAS, (index) => ({
    ...REPLICA_SETTINGS,
    ...READABLE,
    ...topology.environmentOf(index),
  }));
  const sample = (when: string): Promise<Sample> => takeSample(when, fleet, topology.servers[0]!);

  await runLoad(fleet, new Ledger(), random.fork('warm-up'), () => delay(WARM_UP_MILLIS));
  const leftByWarmUp = await leftovers(topology.servers);
  const samples = [await sample('start')];
  const standstills = new Standstills();
  const ledger = new Ledger();
  await runLoad(fleet, ledger, random.fork('load'), async () => {
    for (let quarter = 1; quarter <= QUARTERS; quarter += 1) {
      await delay((seconds * 1000) / QUARTERS);
      samples.push(await sample(`quarter ${quarter}`));
    }
  });
  const left = await leftovers(topology.servers);
  samples.push(await sample('end'));

  const [start, end] = [samples[0]!, samples.at(-1)!];
  standstills.stop();
  const evidence = { ledger, faults: [], standstills };
  const violations = [
    ...leftByWarmUp,
    ...left,
    ...end.replicas.flatMap((reading, index) =>
      compare(`replica ${index}`, start.replicas[index]!, reading),
    ),
    ...wrongAnswers(evidence),
    ...lateAnswers(evidence),
    ...misbehaviour(fleet.members, await fleet.stop()),
  ];
  return { seconds, requests: ledger.entries.length, samples, violations };
}

/** Has clients ask while `meanwhile` goes on, and resolves when all have their answers. */
async function runLoad(
  fleet: Fleet,
  ledger: Ledger,
  random: Random,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const load = new Load({ fleet, ledger, random });
  await meanwhile();
  await within(ANSWERED_WITHIN_MILLIS, 'the last answers', () => load.stop());
}

/** What everybody holds at one moment. */
interface Sample {
  readonly when: string;
  /** By their indexes. */
  readonly replicas: readonly Reading[];
  readonly redisKeys: number;
  readonly redisBytes: number;
}

async function takeSample(when: string, fleet: Fleet, server: RedisProcess): Promise<Sample> {
  const replicas = await Promise.all(fleet.living.map(({ process }) => read(process)));
  const memory = (await server.command('INFO', 'memory')) as string;
  return {
    when,
    replicas,
    redisKeys: (await server.command('DBSIZE')) as number,
    redisBytes: Number(/^used_memory:(\d+)/m.exec(memory)?.[1]),
  };
}
