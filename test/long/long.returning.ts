import { mkdirSync, writeFileSync } from 'node:fs';

import { chaosOptions } from '../support/chaos/chaos-options.js';
import { endEverythingAfterwards } from '../support/chaos/end-everything.js';
import { expectNothingWrong, say } from '../support/chaos/expect-no-violations.js';
import type { ReturningReport } from '../support/chaos/returning/report.js';
import { runReturning } from '../support/chaos/returning/run-returning.js';

const RESULTS = new URL('results/', import.meta.url);
/** Time besides the faults: for starts, the last answers, the end of keys, and the judgement. */
const OTHER_TIMEOUT_MILLIS = 900_000;

endEverythingAfterwards();
const options = chaosOptions(process.env, { seconds: 600, rounds: 1 });
const seeds = Array.from({ length: options.rounds }, (_, round) => options.seed + round);
const reports: ReturningReport[] = [];

describe('clients that wait, leave and return while replicas fail', () => {
  test.each(seeds)(
    'keep their places and their approvals, and get the answers that these have (seed %d)',
    async (seed) => {
      const { seconds } = options;
      say(`chaos: returning clients, seed ${seed}, ${seconds} s`);
      const report = await runReturning({ seed, seconds });
      reports.push(report);
      expectNothingWrong(report, '--returning');
    },
    options.seconds * 1000 + OTHER_TIMEOUT_MILLIS,
  );
});

afterAll(() => {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(new URL('returning.json', RESULTS), `${JSON.stringify(reports, undefined, 2)}\n`);
});
