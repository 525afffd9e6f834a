import { jest } from '@jest/globals';

import { endEverythingAfterwards } from '../../support/chaos/end-everything.js';
import type { Cell } from '../../support/chaos/recovery/cells.js';
import { expectRecovered } from '../../support/chaos/recovery/matrix-report.js';
import { runMatrix } from '../../support/chaos/recovery/run-matrix.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent } from '../../support/extent.js';

/** A short stall, which had wedged a replica for good when it came upon more keys. */
const QUICK_CELL: Cell = { load: 'bulk', fault: 'stall-1500', keys: 2000 };

/** Each load and each fault of one Redis, and the most keys where a short stall had wedged a replica for good. */
const FULL_CELLS: readonly Cell[] = [
  { load: 'bulk', fault: 'stall-1500', keys: 19_000 },
  { load: 'leaving', fault: 'stall-5000', keys: 1000 },
  { load: 'waiting', fault: 'restart-empty', keys: 500 },
  { load: 'plain', fault: 'late', keys: 1000 },
  { load: 'grpc', fault: 'restart', keys: 5000 },
  { load: 'releases', fault: 'cut', keys: 2000 },
  { load: 'waiting', fault: 'stall-300', keys: 500 },
  { load: 'bulk', fault: 'flush', keys: 5000 },
  { load: 'bulk', fault: 'flush-stalled', keys: 2000 },
  { load: 'turning', fault: 'stall-800', keys: 12 },
];

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
