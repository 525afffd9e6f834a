import { mkdirSync, writeFileSync } from 'node:fs';

import { endEverythingAfterwards } from '../support/chaos/end-everything.js';
import { say } from '../support/chaos/expect-no-violations.js';
import { expectRecovered } from '../support/chaos/recovery/matrix-report.js';
import { recoveryOptions } from '../support/chaos/recovery/recovery-options.js';
import { type MatrixReport, runMatrix } from '../support/chaos/recovery/run-matrix.js';

const RESULTS = new URL('./results/', import.meta.url);
/** For a cell whose replica does not recover, with its start and end. */
const CELL_TIMEOUT_MILLIS = 120_000;

endEverythingAfterwards();
const { topologies, seed, seconds, cellsOf } = recoveryOptions(process.env);

describe.each(topologies)('under any load, after a fault, with %s,', (topology) => {
  const cells = cellsOf(topology);
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
