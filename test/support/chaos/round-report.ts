import type { Evidence } from './checks/evidence.js';
import type { OverfullSpan, SpanJudgement } from './checks/spans.js';
import type { Overfull } from './checks/windows.js';
import { type FaultRecord, overlaps } from './faults/fault.js';
import type { Entry, RequestKind } from './ledger.js';
import type { TopologyName } from './topologies/topology.js';

/** How long a fault may be felt when it is over. */
const RECOVERY_MILLIS = 1000;

/** What the checks have found. */
export interface Findings {
  /** How many windows were judged, of own limits and of further limits, and how many of both are those of calendars. */
  readonly windows: { readonly own: number; readonly further: number; readonly periods: number };
  /** How many approvals were judged of sliding windows and of token buckets. */
  readonly approvalsInSpans: SpanJudgement['approvals'];
  /** How many approvals of scripts were held against what the server held. */
  readonly observedApprovals: number;
  /** Windows over the maximum in which Redis had forgotten something. */
  readonly excess: readonly Overfull[];
  /** The same for spans of sliding windows and of token buckets. */
  readonly excessInSpans: readonly OverfullSpan[];
  readonly violations: readonly string[];
}

/** Approvals beyond the maximum. */
export interface Excess {
  readonly windows: number;
  readonly approvals: number;
  /** In one window. */
  readonly worst: number;
}

/** What became of a round, for the summary. */
export interface RoundReport extends Findings {
  readonly topology: TopologyName;
  readonly seed: number;
  readonly seconds: number;
  /** How often each fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  /** How often rules and tokens changed, by how. */
  readonly reloads: Readonly<Record<string, number>>;
  /** What happened, and when in the round. */
  readonly timeline: readonly string[];
  /** How many requests had each status, or ended without one. */
  readonly requests: Readonly<Record<string, number>>;
  /** How many of the 503 came when nothing had been wrong for a second. */
  readonly unavailableWithoutFault: number;
  /** The longest time to an answer of each kind of request, in milliseconds. */
  readonly longestAnswerMillis: Readonly<Partial<Record<RequestKind, number>>>;
  /** Approvals beyond the maximum, by the fault that made Redis forget. */
  readonly excessBy: Readonly<Record<string, Excess>>;
}

export function summarize(
  round: Pick<RoundReport, 'topology' | 'seed' | 'seconds'>,
  { ledger, faults }: Pick<Evidence, 'ledger' | 'faults'>,
  reloads: readonly FaultRecord[],
  findings: Findings,
): RoundReport {
  return {
    ...round,
    faults: countOf(faults.map(({ name }) => name)),
    reloads: countOf(reloads.map(({ name }) => name)),
    timeline: [...faults, ...reloads]
      .sort((a, b) => a.beganAt - b.beganAt)
      .map((fault) => describeFault(fault, ledger.entries[0]?.sentAt ?? 0)),
    requests: countOf(ledger.entries.map(outcomeOf)),
    unavailableWithoutFault: ledger.entries.filter(
      ({ status, sentAt, endedAt }) =>
        status === 503 &&
        !faults.some((fault) => overlaps(fault, sentAt - RECOVERY_MILLIS, endedAt ?? sentAt)),
    ).length,
    longestAnswerMillis: longest(ledger.entries),
    excessBy: excessBy(findings.excess),
    ...findings,
  };
}

function excessBy(overfull: readonly Overfull[]): Record<string, Excess> {
  const excess: Record<string, Excess> = {};
  for (const { forgotBy = '', approved, maximum } of overfull) {
    const { windows, approvals, worst } = excess[forgotBy] ?? {
      windows: 0,
      approvals: 0,
      worst: 0,
    };
    const more = approved - maximum;
    excess[forgotBy] = {
      windows: windows + 1,
      approvals: approvals + more,
      worst: Math.max(worst, more),
    };
  }
  return excess;
}

export function describeFault(
  { name, target, beganAt, endedAt }: FaultRecord,
  startedAt: number,
): string {
  return `${beganAt - startedAt} to ${endedAt - startedAt} ms: ${name}, ${target} (from ${beganAt})`;
}

function outcomeOf({ kind, status, outcome }: Entry): string {
  return `${kind} ${status ?? outcome}`;
}

function longest(entries: readonly Entry[]): RoundReport['longestAnswerMillis'] {
  const longest: Partial<Record<RequestKind, number>> = {};
  for (const { kind, sentAt, endedAt, outcome } of entries) {
    if (endedAt === undefined || outcome !== 'answered') continue;
    longest[kind] = Math.max(longest[kind] ?? 0, endedAt - sentAt);
  }
  return longest;
}

/** How often each name comes, in alphabetical order. */
export function countOf(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of [...names].sort()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
