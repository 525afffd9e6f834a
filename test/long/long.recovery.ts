import { mkdirSync, writeFileSync } from 'node:fs';

import { type ChaosOptions, chaosOptions } from '../support/chaos/chaos-options.js';
import { endEverythingAfterwards } from '../support/chaos/end-everything.js';
import { say } from '../support/chaos/expect-no-violations.js';
import { type Cell, cellsOf, nameOf } from '../support/chaos/recovery/cells.js';
import { expectRecovered } from '../support/chaos/recovery/matrix-report.js';
import { type MatrixReport, runMatrix } from '../support/chaos/recovery/run-matrix.js';
import type { TopologyName } from '../support/chaos/topologies/topology.js';

/** What a run of the matrix is asked for, by environment variables that `scripts/recovery.mjs` sets. */
interface RecoveryOptions extends Pick<ChaosOptions, 'seed' | 'seconds' | 'topologies'> {
  /** The cells of a topology: all, or the one that is asked for. */
  readonly cellsOf: (topology: TopologyName) => Cell[];
}

/** @throws Error where a variable has no sense */
function recoveryOptions(
  environment: Readonly<Record<string, string | undefined>>,
): RecoveryOptions {
  const { CHAOS_CELL: wanted } = environment;
  const options = chaosOptions(environment, { seconds: 0, rounds: 1 });
  const cells = (topology: TopologyName): Cell[] =>
    cellsOf(topology).filter((cell) => !wanted || nameOf(cell) === wanted);
  const topologies = options.topologies.filter((topology) => cells(topology).length > 0);
  if (topologies.length === 0) {
    throw new Error(`CHAOS_CELL: no cell of ${options.topologies.join()} is called ${wanted!}`);
  }
  return { ...options, topologies, cellsOf: cells };
}

const RESULTS = new URL('./results/', import.meta.url);
/** For a cell whose replica does not recover, with its start and end. */
const CELL_TIMEOUT_MILLIS = 120_000;

endEverythingAfterwards();
const { topologies, seed, seconds, cellsOf: cellsToRun } = recoveryOptions(process.env);

describe.each(topologies)('under any load, after a fault, with %s,', (topology) => {
  const cells = cellsToRun(topology);
  test(
    'the replica recovers in time, and nothing is lost or counted twice',
    async () => {
      say(`recovery: ${topology}, seed ${seed}, ${cells.length} cells`);
      const report = await runMatrix(topology, cells, seed, seconds);
      reports.push(report);
      expectRecovered(report);
    },
    seconds * 1000 + (cells.length + 1) * CELL_TIMEOUT_MILLIS,
  );
});

const reports: MatrixReport[] = [];
afterAll(() => {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(new URL('recovery.json', RESULTS), `${JSON.stringify(reports, undefined, 2)}\n`);
});
