import type { Evidence } from './checks/evidence.js';
import type { FaultRecord } from './faults/fault.js';
import type { TopologyName } from './topologies/topology.js';

/** What became of a round. */
export interface RoundReport {
  readonly topology: TopologyName;
  readonly seed: number;
  readonly seconds: number;
  /** How often each fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  /** How often rules changed, by how. */
  readonly reloads: Readonly<Record<string, number>>;
  /** What happened, and when in the round. */
  readonly timeline: readonly string[];
  /** How many approvals of scripts were held against what the server held. */
  readonly observedApprovals: number;
  readonly violations: readonly string[];
}

export function reportOf(
  round: Pick<RoundReport, 'topology' | 'seed' | 'seconds'>,
  { ledger, account, faults }: Pick<Evidence, 'ledger' | 'account' | 'faults'>,
  reloads: readonly FaultRecord[],
  violations: readonly string[],
): RoundReport {
  return {
    ...round,
    faults: countOf(faults.map(({ name }) => name)),
    reloads: countOf(reloads.map(({ name }) => name)),
    timeline: [...faults, ...reloads]
      .sort((a, b) => a.beganAt - b.beganAt)
      .map((fault) => describeFault(fault, ledger.entries[0]?.sentAt ?? 0)),
    observedApprovals: account.judged,
    violations,
  };
}

export function describeFault(
  { name, target, beganAt, endedAt }: FaultRecord,
  startedAt: number,
): string {
  return `${beganAt - startedAt} to ${endedAt - startedAt} ms: ${name}, ${target} (from ${beganAt})`;
}

/** How often each name comes, in alphabetical order. */
export function countOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
