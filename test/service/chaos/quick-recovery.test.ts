import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent } from '../../support/extent.js';
import { endEverythingAfterwards } from '../../support/chaos/end-everything.js';
import { expectRecovered } from '../../support/chaos/recovery/matrix-report.js';
import { runMatrix } from '../../support/chaos/recovery/run-matrix.js';
import { FULL_CELLS, QUICK_CELL } from '../../support/chaos/recovery/quick-cells.js';

/** The same at every run; others by `npm run test:recovery`. */
const SEED = 11;

endEverythingAfterwards();

describeWithRedisProgram('whatever load meets a fault of Redis', () => {
  test('its replica recovers in time, and nothing is lost or counted twice', async () => {
    const report = await runMatrix('standalone', extent([QUICK_CELL], FULL_CELLS), SEED, 0);
    expectRecovered(report);
    expect(report.cells.map(({ approvals }) => approvals)).not.toContain(0);
  }, 600_000);
});
