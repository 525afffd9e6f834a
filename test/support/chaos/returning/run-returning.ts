import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { scrape } from '../../prometheus-text.js';
import { type RedisProcess, startRedisProcess, stopRedisProcesses } from '../../redis-process.js';
import { killReplicas } from '../../replica-process.js';
import { leftovers } from '../checks/leftovers.js';
import { notRecovered } from '../checks/recovery.js';
import { misbehaviour } from '../checks/replicas.js';
import { replicaDies, replicaStandsStill, replicaStops } from '../faults/replica-faults.js';
import { runFaults } from '../faults/run-faults.js';
import { Fleet } from '../fleet.js';
import { keepEvidence } from '../keep-evidence.js';
import { Random } from '../random.js';
import { Standstills } from '../standstills.js';
import { lastWithin, within } from '../within.js';
import { ReturningAccount } from './account.js';
import { wrongAnswers } from './checks/answers.js';
import type { Evidence } from './checks/evidence.js';
import { wrongGrants } from './checks/grants.js';
import { lostPlaces, lostTurns } from './checks/places.js';
import { ReturningClients } from './clients.js';
import { RETURNING_KEYS, RETURNING_SETTINGS, rulesText } from './keys.js';
import { reportOf, type ReturningReport } from './report.js';
import { Visits } from './visits.js';

const REPLICAS = 3;
/** A client that waits longer than this for its last answer waits for ever. */
const ANSWERED_WITHIN_MILLIS = 60_000;
/** All places that nobody returns for have ended by then, on a busy machine as well. */
const FORGOTTEN_WITHIN_MILLIS = 20_000;
const KEYS = RETURNING_KEYS.map(({ key }) => key);

export interface ReturningRound {
  readonly seed: number;
  /** How long replicas are killed, stopped and frozen. */
  readonly seconds: number;
  /** Whether the end is not waited for of names that expire by themselves. */
  readonly isQuick?: boolean;
}

/** Runs one round from the start of its servers to their end, and judges it. */
export async function runReturning(round: ReturningRound): Promise<ReturningReport> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-returning-'));
  try {
    return await runOn(await startRedisProcess(), folder, round);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await killReplicas();
    await stopRedisProcesses();
  }
}

async function runOn(
  redis: RedisProcess,
  folder: string,
  round: ReturningRound,
): Promise<ReturningReport> {
  const random = new Random(round.seed);
  const rules = join(folder, 'rules.json');
  writeFileSync(rules, rulesText());
  const account = await ReturningAccount.open(redis, KEYS);
  const standstills = new Standstills();
  const visits = new Visits();
  try {
    const fleet = await Fleet.start(REPLICAS, () => ({
      ...RETURNING_SETTINGS,
      REDIS_URL: redis.url,
      CONFIG_FILE: rules,
    }));
    const clients = new ReturningClients({ fleet, visits, random: random.fork('clients') });
    const kinds = [replicaDies(fleet), replicaStops(fleet), replicaStandsStill(fleet)];
    const faults = await runFaults(kinds, random.fork('faults'), round.seconds * 1000);
    await within(ANSWERED_WITHIN_MILLIS, 'the last answers', () => clients.stop());
    const atTheEnd = [
      ...(await notRecovered(fleet, KEYS)),
      ...(await stillWaiting(fleet)),
      ...(await leftovers([redis], round.isQuick)),
      ...misbehaviour(fleet.members, await fleet.stop()),
    ];
    await account.upToNow();
    const evidence = {
      ...{ runs: account.runs, faults },
      ...{ visits: visits.all, terms: visits.terms },
      lateMillis: (from: number, to: number) => standstills.millisWithin(from, to),
      longestStandstill: (from: number, to: number) => standstills.longestWithin(from, to),
    };
    const missed = account.gaps === 0 ? [] : [`MONITOR was lost ${account.gaps} times`];
    const report = reportOf(round, evidence, [...missed, ...judge(evidence), ...atTheEnd]);
    if (report.violations.length > 0) {
      keepEvidence({ topology: 'returning', ...report }, account, fleet.members, visits.all);
    }
    return report;
  } finally {
    standstills.stop();
    await account.close();
  }
}

/** Which replicas keep waiters although no client returns any more. */
async function stillWaiting({ living }: Fleet): Promise<string[]> {
  const results = await Promise.all(
    living.map(({ index, process }) =>
      lastWithin(
        FORGOTTEN_WITHIN_MILLIS,
        async () => {
          const waiting = (await scrape(process.url)).value('ratelimit_waiting');
          return waiting > 0 ? [`replica ${index} believes that ${waiting} wait`] : [];
        },
        (violations) => violations.length === 0,
      ),
    ),
  );
  return results.flat();
}

/** Describes everything that breaks a promise to clients that return. */
function judge(evidence: Evidence): string[] {
  return [lostPlaces, lostTurns, wrongGrants, wrongAnswers].flatMap((check) => check(evidence));
}
