import { countOf, describeFault } from '../round-report.js';
import type { Evidence } from './checks/evidence.js';

/** What became of a round of clients that return. */
export interface ReturningReport {
  readonly seed: number;
  /** How long faults went on. */
  readonly seconds: number;
  /** How often each fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  /** What happened, and when in the round. */
  readonly timeline: readonly string[];
  /** How often scripts did each thing, as `<key>: <thing>`. */
  readonly happenings: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

export function reportOf(
  { seed, seconds }: Pick<ReturningReport, 'seed' | 'seconds'>,
  { visits, runs, faults }: Pick<Evidence, 'visits' | 'runs' | 'faults'>,
  violations: readonly string[],
): ReturningReport {
  const startedAt = visits[0]?.sentAt ?? 0;
  const happenings = runs.flatMap((run) => run.happenings.map(({ what }) => `${run.key}: ${what}`));
  return {
    ...{ seed, seconds, violations },
    faults: countOf(faults.map(({ name }) => name)),
    timeline: faults.map((fault) => describeFault(fault, startedAt)),
    happenings: countOf(happenings),
  };
}
