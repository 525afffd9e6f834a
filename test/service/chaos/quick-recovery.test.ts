import { jest } from '@jest/globals';

import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent } from '../../support/extent.js';
import { endEverythingAfterwards } from '../../support/chaos/end-everything.js';
import { expectRecovered } from '../../support/chaos/recovery/matrix-report.js';
import { runMatrix } from '../../support/chaos/recovery/run-matrix.js';
import { FULL_CELLS, QUICK_CELL } from '../../support/chaos/recovery/quick-cells.js';

/** The same at every run; `npm run test:recovery` uses others. */
const SEED = 11;

endEverythingAfterwards();
// On a machine that does twice as much else, it takes a quarter of an hour.
jest.setTimeout(3_600_000);

describeWithRedisProgram('under any load, after a fault of Redis,', () => {
  test('the replica recovers in time, and nothing is lost or counted twice', async () => {
    const report = await runMatrix('standalone', extent([QUICK_CELL], FULL_CELLS), SEED, 0);
    expectRecovered(report);
    expect(report.cells.map(({ approvals }) => approvals)).not.toContain(0);
  }, 600_000);
});
