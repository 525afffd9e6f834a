import type { RoundReport } from './round-report.js';

/** More are of the same kind, mostly. */
const SHOWN = 20;

/** @throws Error that says what was violated, and how to have the same round again */
export function expectNoViolations({ topology, seed, seconds, violations }: RoundReport): void {
  if (violations.length === 0) return;
  const shown = violations.slice(0, SHOWN);
  const replay = `npm run test:chaos -- --topology ${topology} --seed ${seed} --seconds ${seconds}`;
  throw new Error(
    [`${violations.length} violations with seed ${seed} (${replay}):`, ...shown].join('\n'),
  );
}

/** Past jest, which would show it only when the test has ended. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
