import type { RoundReport } from './round-report.js';

/** More are of the same kind, mostly. */
const SHOWN = 20;

type Judged = Pick<RoundReport, 'seed' | 'seconds' | 'violations'>;

/** @throws Error that says what was violated, and how to have the same round again */
export function expectNoViolations({ topology, ...report }: RoundReport): void {
  expectNothingWrong(report, `--topology ${topology}`);
}

/**
 * The same for another kind of rounds.
 * @param options by which `npm run test:chaos` runs this kind
 */
export function expectNothingWrong({ seed, seconds, violations }: Judged, options: string): void {
  if (violations.length === 0) return;
  const shown = violations.slice(0, SHOWN);
  const replay = `npm run test:chaos -- ${options} --seed ${seed} --seconds ${seconds}`;
  throw new Error(
    [`${violations.length} violations with seed ${seed} (${replay}):`, ...shown].join('\n'),
  );
}

/** Past jest, which would show it only when the test has ended. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
