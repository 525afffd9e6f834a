import { mkdirSync, writeFileSync } from 'node:fs';

import { chaosOptions } from '../support/chaos/chaos-options.js';
import { endEverythingAfterwards } from '../support/chaos/end-everything.js';
import { expectNoViolations, say } from '../support/chaos/expect-no-violations.js';
import type { RoundReport } from '../support/chaos/round-report.js';
import { runChaos } from '../support/chaos/run-chaos.js';

const RESULTS = new URL('results/', import.meta.url);
/** Time besides the faults: for starts, the last answers, the end of keys, and failovers. */
const OTHER_TIMEOUT_MILLIS = 400_000;

endEverythingAfterwards();
const options = chaosOptions(process.env, { seconds: 60, rounds: 1 });
const seeds = Array.from({ length: options.rounds }, (_, round) => options.seed + round);

describe.each(options.topologies)('under random faults, with %s,', (topology) => {
  test.each(seeds)(
    'limits, order and answers are right, and nothing is left (seed %d)',
    async (seed) => {
      const { seconds } = options;
      say(`chaos: ${topology}, seed ${seed}, ${seconds} s`);
      const report = await runChaos({ topology, seed, seconds });
      reports.push(report);
      expectNoViolations(report);
    },
    options.seconds * 1000 + OTHER_TIMEOUT_MILLIS,
  );
});

const reports: RoundReport[] = [];
afterAll(() => {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(new URL('latest.json', RESULTS), `${JSON.stringify(reports, undefined, 2)}\n`);
});
