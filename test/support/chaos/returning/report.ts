import { countOf, describeFault } from '../round-report.js';
import type { Evidence } from './checks/evidence.js';
import type { Visit } from './visits.js';

/** What became of a round of clients that return. */
export interface ReturningReport {
  readonly seed: number;
  /** How long faults went on. */
  readonly seconds: number;
  /** How often each fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  /** What happened, and when in the round. */
  readonly timeline: readonly string[];
  /** How many requests the clients made, each with one or more visits. */
  readonly requests: number;
  /** How many visits had each status, or ended without one. */
  readonly visits: Readonly<Record<string, number>>;
  /** How often scripts did each thing, as `<key>: <thing>`. */
  readonly happenings: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

export function reportOf(
  { seed, seconds }: Pick<ReturningReport, 'seed' | 'seconds'>,
  { visits, terms, runs, faults }: Pick<Evidence, 'visits' | 'terms' | 'runs' | 'faults'>,
  violations: readonly string[],
): ReturningReport {
  const startedAt = visits[0]?.sentAt ?? 0;
  const happenings = runs.flatMap((run) => run.happenings.map(({ what }) => `${run.key}: ${what}`));
  return {
    ...{ seed, seconds, violations },
    faults: countOf(faults.map(({ name }) => name)),
    timeline: faults.map((fault) => describeFault(fault, startedAt)),
    requests: terms.size,
    visits: countOf(visits.map(outcomeOf)),
    happenings: countOf(happenings),
  };
}

/** The report as text. */
export function returningText(report: ReturningReport): string {
  const { seed, seconds, requests, violations } = report;
  return [
    `returning clients, seed ${seed}, ${seconds} s of faults: ${violations.length} violations`,
    `  faults: ${countsText(report.faults)}`,
    `  requests: ${requests}, in visits: ${countsText(report.visits)}`,
    `  in Redis: ${countsText(report.happenings)}`,
  ].join('\n');
}

function outcomeOf({ kind, status, outcome }: Visit): string {
  return `${kind} ${status ?? outcome}`;
}

function countsText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
