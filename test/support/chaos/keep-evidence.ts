import { mkdirSync, writeFileSync } from 'node:fs';

import type { Member } from './fleet.js';
import type { RedisAccount } from '../monitor/redis-account.js';
import type { RoundReport } from './round-report.js';

const RESULTS = new URL('../../long/results/', import.meta.url);

/**
 * Writes down what happened in a round that went wrong: what the servers did (port, time, client,
 * command), what the replicas logged (index, line), what failed when, all violations, and
 * what clients that return saw.
 */
export function keepEvidence(
  {
    topology,
    seed,
    timeline,
    violations,
  }: Pick<RoundReport, 'seed' | 'timeline' | 'violations'> & { topology: string },
  { commands }: Pick<RedisAccount, 'commands'>,
  members: readonly Member[],
  visits: readonly unknown[] = [],
): void {
  const lines = members.flatMap(({ index, process }) =>
    process.log.map((line) => `${index} ${process.id} ${JSON.stringify(line)}`),
  );
  mkdirSync(RESULTS, { recursive: true });
  const write = (what: string, text: readonly string[]): void => {
    writeFileSync(new URL(`${topology}-${seed}.${what}.txt`, RESULTS), text.join('\n'));
  };
  write('commands', commands);
  write('replicas', lines);
  write('faults', timeline);
  write('violations', violations);
  write(
    'visits',
    visits.map((visit) => JSON.stringify(visit)),
  );
}
