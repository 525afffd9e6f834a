import type { TopologyName } from '../topologies/topology.js';
import type { CellReport } from './run-cell.js';
import type { MatrixReport } from './run-matrix.js';

/** More are of the same kind, mostly. */
const SHOWN = 20;

/** A cell in one line, and what is wrong in the next. */
export function cellText(topology: TopologyName, report: CellReport): string {
  const { cell, keys, approvals, recovered, caughtUp, slowness, violations } = report;
  const times = `checks after ${millis(recovered)}, all done after ${millis(caughtUp)}`;
  return [
    `${topology} ${cell.padEnd(22)} ${times}; ${keys} keys, ${approvals} approvals, slowness ${slowness.toFixed(1)}`,
    ...violations.slice(0, SHOWN).map((violation) => `  ${violation}`),
  ].join('\n');
}

/** @throws Error that says which cells failed, and how to have them again */
export function expectRecovered({ topology, cells }: MatrixReport): void {
  const failed = cells.filter(({ violations }) => violations.length > 0);
  if (failed.length === 0) return;
  const lines = failed.flatMap(({ cell, seed, violations }) => [
    `npm run test:recovery -- --topology ${topology} --cell ${cell} --seed ${seed}`,
    ...violations.slice(0, SHOWN).map((violation) => `  ${violation}`),
  ]);
  throw new Error([`${failed.length} of ${cells.length} cells failed:`, ...lines].join('\n'));
}

function millis(time = Infinity): string {
  return time === Infinity ? 'never' : String(time);
}
