import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { killReplicas, type LogLine } from '../replica-process.js';
import { stopRedisProcesses } from '../redis-process.js';
import { unfoundedApprovals } from './checks/approvals.js';
import { wrongAnswers } from './checks/answers.js';
import { lateAnswers, lateNews } from './checks/bounds.js';
import type { Evidence } from './checks/evidence.js';
import { overtakenInRedis } from './checks/fifo.js';
import { overspentByGroups } from './checks/groups.js';
import { replicaLeftovers } from './checks/replica-leftovers.js';
import { leftovers } from './checks/leftovers.js';
import { answersByOtherRules, undeclaredLimits } from './checks/limits-given.js';
import { notRecovered } from './checks/recovery.js';
import { misbehaviour } from './checks/replicas.js';
import { RulesFile } from './declared/rules-file.js';
import { HIGHEST_MAXIMUM } from './declared/rules-text.js';
import { declarationFaults, NOT_RELOADED } from './faults/declaration-faults.js';
import { type FaultKind, type FaultRecord, overlaps } from './faults/fault.js';
import {
  replicaGetsCostlyBodies,
  replicaGetsRejectedRequests,
  replicaGetsUnreadAnswers,
} from './faults/replica-faults.js';
import { runFaults } from './faults/run-faults.js';
import { Fleet, type Member } from './fleet.js';
import { keepEvidence } from './keep-evidence.js';
import { Ledger } from './ledger.js';
import { ALL_KEYS, leastMemoryMillis, REPLICA_SETTINGS, UNDECLARED } from './limits.js';
import { Load } from './load.js';
import { RedisAccount } from '../monitor/redis-account.js';
import { Random } from './random.js';
import { READABLE, type Reading, read } from './replica-reading.js';
import { reportOf, type RoundReport } from './round-report.js';
import { Standstills } from './standstills.js';
import { WithheldTime } from './withheld-time.js';
import { startTopology } from './topologies/start-topology.js';
import type { Topology, TopologyName } from './topologies/topology.js';
import { within } from './within.js';

const REPLICAS = 3;
const WARM_UP_MILLIS = 800;
/**
 * The longest queue takes a few seconds; after a failover some more, until all are back in it. A client that
 * waits longer than this waits for ever.
 */
const ANSWERED_WITHIN_MILLIS = 60_000;
const SETTLED_WITHIN_MILLIS = 60_000;

export interface Round {
  readonly topology: TopologyName;
  readonly seed: number;
  /** How long faults go on. */
  readonly seconds: number;
  /** Whether the end is not waited for of names that expire by themselves. */
  readonly isQuick?: boolean;
}

/** Runs one round from the start of its servers to their end, and judges it. */
export async function runChaos(round: Round): Promise<RoundReport> {
  const topology = await startTopology(round.topology, REPLICAS);
  const folder = mkdtempSync(join(tmpdir(), 'sluice-chaos-'));
  try {
    return await runOn(topology, folder, round);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await killReplicas();
    await topology.stop();
    await stopRedisProcesses();
  }
}

async function runOn(topology: Topology, folder: string, round: Round): Promise<RoundReport> {
  const random = new Random(round.seed);
  const account = new RedisAccount(topology.servers, ALL_KEYS, {
    highestMaximum: HIGHEST_MAXIMUM,
    rememberedMillis: leastMemoryMillis,
  });
  const rules = new RulesFile(folder, random.fork('rules'));
  const standstills = new Standstills();
  const ledger = new Ledger();
  let fleet: Fleet | undefined;
  const withheld = new WithheldTime(() => fleet?.living ?? []);
  try {
    fleet = await Fleet.start(REPLICAS, (index) => ({
      ...REPLICA_SETTINGS,
      ...UNDECLARED,
      ...READABLE,
      ...topology.environmentOf(index),
      CONFIG_FILE: rules.path,
    }));
    const before = await warmUp(fleet, random.fork('warm-up'));
    const load = new Load({ fleet, ledger, random: random.fork('load') });
    const { faults, reloads } = await haveFaults(
      topology,
      fleet,
      load,
      random,
      round.seconds,
      rules,
    );
    const atTheEnd = await judgeTheEnd(topology, fleet, load, before, round.isQuick);
    await within(SETTLED_WITHIN_MILLIS, 'the accounts', () => account.upToNow());
    const mayLog = ({ msg, time }: LogLine): boolean => {
      const at = Date.parse(String(time));
      return (
        String(msg).startsWith(NOT_RELOADED) && reloads.some((reload) => overlaps(reload, at, at))
      );
    };
    atTheEnd.push(...misbehaviour(fleet.members, await fleet.stop(), mayLog));
    const evidence = { ledger, account, limits: rules.limits, faults, standstills, withheld };
    const result = reportOf(round, evidence, reloads, [...violationsIn(evidence), ...atTheEnd]);
    if (result.violations.length > 0) keepEvidence(result, account, fleet.members);
    return result;
  } finally {
    standstills.stop();
    withheld.stop();
    await account.close();
  }
}

interface Happened {
  readonly faults: readonly FaultRecord[];
  readonly reloads: readonly FaultRecord[];
}

/** Has faults happen, and rules change at the same time. */
async function haveFaults(
  topology: Topology,
  fleet: Fleet,
  load: Load,
  random: Random,
  seconds: number,
  rules: RulesFile,
): Promise<Happened> {
  const run = (kinds: readonly FaultKind[], stream: string): Promise<FaultRecord[]> =>
    runFaults(kinds, random.fork(stream), seconds * 1000);
  const both = [
    run(
      [
        ...topology.faults(fleet),
        replicaGetsCostlyBodies(fleet),
        replicaGetsUnreadAnswers(fleet),
        replicaGetsRejectedRequests(fleet),
      ],
      'faults',
    ),
    run(declarationFaults(fleet, rules), 'reloads'),
  ];
  try {
    const [faults = [], reloads = []] = await Promise.all(both);
    await within(SETTLED_WITHIN_MILLIS, 'the servers to settle', () => topology.settled());
    return { faults, reloads };
  } catch (error) {
    void load.stop();
    await Promise.allSettled(both);
    throw error;
  }
}

/** What is wrong when nothing goes wrong any more. */
async function judgeTheEnd(
  { servers }: Topology,
  fleet: Fleet,
  load: Load,
  before: ReadonlyMap<Member, Reading>,
  isQuick?: boolean,
): Promise<string[]> {
  const stuck = await notRecovered(fleet, ALL_KEYS);
  await endLoad(load);
  return [...stuck, ...(await leftovers(servers, isQuick)), ...(await heldByVeterans(before))];
}

/** What each replica holds when it has done all that it can do, and nothing has gone wrong. */
async function warmUp(fleet: Fleet, random: Random): Promise<Map<Member, Reading>> {
  const load = new Load({ fleet, ledger: new Ledger(), random });
  await new Promise((resolve) => setTimeout(resolve, WARM_UP_MILLIS));
  await within(ANSWERED_WITHIN_MILLIS, 'the warm-up to end', () => load.stop());
  return new Map(
    await Promise.all(
      fleet.living.map(async (member) => [member, await read(member.process)] as const),
    ),
  );
}

/** Those that live on are the more interesting the more they have been through. */
async function heldByVeterans(before: ReadonlyMap<Member, Reading>): Promise<string[]> {
  const veterans = [...before].filter(([{ wasKilled }]) => !wasKilled);
  const held = await Promise.all(
    veterans.map(([member, reading]) => replicaLeftovers(member, reading)),
  );
  return held.flat();
}

/** The ledger shows the clients without an answer by then. */
async function endLoad(load: Load): Promise<void> {
  try {
    await within(ANSWERED_WITHIN_MILLIS, 'the last answers', () => load.stop());
  } catch {
    // The check of bounds says it with more detail.
  }
}

function violationsIn(evidence: Evidence): string[] {
  return [
    ...evidence.account.violations,
    ...undeclaredLimits(evidence),
    ...answersByOtherRules(evidence),
    ...overtakenInRedis(evidence),
    ...overspentByGroups(evidence),
    ...lateAnswers(evidence),
    ...lateNews(evidence),
    ...wrongAnswers(evidence),
    ...unfoundedApprovals(evidence),
  ];
}
