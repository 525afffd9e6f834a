import type { TopologyName } from '../topologies/topology.js';
import { FAULT_NAMES, LOAD_NAMES } from './cells.js';
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

/** The longest times of each load and fault, in milliseconds: until checks succeed, and until all is done. */
export function matrixText({ topology, seed, cells }: MatrixReport): string {
  const header = ['', ...LOAD_NAMES];
  const rows = FAULT_NAMES.map((fault) => [
    fault,
    ...LOAD_NAMES.map((load) => {
      const reports = cells.filter(({ cell }) => cell === `${load}/${fault}`);
      if (reports.length === 0) return '-';
      const failed = reports.some(({ violations }) => violations.length > 0) ? '!' : '';
      return `${longest(reports, 'recovered')}/${longest(reports, 'caughtUp')}${failed}`;
    }),
  ]);
  return [
    `${topology}, seed ${seed}, ${cells.length} cells: longest ms until checks succeed/all is done`,
    ...[header, ...rows].map((row) => row.map((text) => text.padEnd(14)).join('')),
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

function longest(reports: readonly CellReport[], time: 'recovered' | 'caughtUp'): string {
  const times = reports.map((report) => report[time] ?? Infinity);
  return millis(Math.max(...times));
}

function millis(time = Infinity): string {
  return time === Infinity ? 'never' : String(time);
}
