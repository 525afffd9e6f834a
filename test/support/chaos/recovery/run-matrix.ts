import { killReplicas } from '../../replica-process.js';
import { say } from '../expect-no-violations.js';
import { Random } from '../random.js';
import type { TopologyName } from '../topologies/topology.js';
import type { Cell } from './cells.js';
import { cellText } from './matrix-report.js';
import { type CellReport, runCell } from './run-cell.js';
import { startStore } from './stores/start-store.js';

export interface MatrixReport {
  readonly topology: TopologyName;
  readonly seed: number;
  /** In the order in which they ran. */
  readonly cells: readonly (CellReport & { readonly seed: number })[];
}

/**
 * Runs every cell once, in an order drawn from the seed, and begins again, with the next seed, while `seconds` are not
 * over. A cell's own course follows from its topology, its name and its seed.
 */
export async function runMatrix(
  topology: TopologyName,
  cells: readonly Cell[],
  seed: number,
  seconds: number,
): Promise<MatrixReport> {
  const endsAt = performance.now() + seconds * 1000;
  const reports: MatrixReport['cells'][number][] = [];
  const store = await startStore(topology);
  try {
    for (let round = seed; round === seed || performance.now() < endsAt; round += 1) {
      for (const cell of new Random(round).fork('order').shuffled(cells)) {
        if (round > seed && performance.now() >= endsAt) break;
        const report = { ...(await runCell(topology, store, cell, round)), seed: round };
        say(cellText(topology, report));
        reports.push(report);
      }
    }
    return { topology, seed, cells: reports };
  } finally {
    await killReplicas();
    await store.stop();
  }
}
