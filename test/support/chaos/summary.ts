import type { RoundReport } from './round-report.js';

/** What became of all rounds, to be read. */
export function summaryText(reports: readonly RoundReport[]): string {
  return reports.map(roundText).join('\n\n');
}

function roundText(report: RoundReport): string {
  const { topology, seed, seconds, windows, approvalsInSpans, excessInSpans, violations } = report;
  return [
    `${topology}, seed ${seed}, ${seconds} s of faults: ${violations.length} violations`,
    `  faults: ${countsText(report.faults)}`,
    `  reloads: ${countsText(report.reloads)}`,
    `  requests: ${countsText(report.requests)}`,
    `  503 when nothing had been wrong for a second: ${report.unavailableWithoutFault}`,
    `  longest answers in ms: ${countsText(report.longestAnswerMillis)}`,
    `  windows judged: ${windows.own} of own limits, ${windows.further} of further limits; ` +
      `${windows.periods} of these of calendars`,
    `  approvals judged: ${countsText(approvalsInSpans)}; in spans with excess by a fault: ${excessInSpans.length}`,
    ...Object.entries(report.excessBy).map(
      ([fault, excess]) =>
        `  excess by ${fault}: ${excess.approvals} approvals in ${excess.windows} windows, ` +
        `at most ${excess.worst} in one`,
    ),
  ].join('\n');
}

function countsText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
