import { mkdirSync, writeFileSync } from 'node:fs';

import { chaosOptions } from '../support/chaos/chaos-options.js';
import { endEverythingAfterwards } from '../support/chaos/end-everything.js';
import { say } from '../support/chaos/expect-no-violations.js';
import { runSoak } from '../support/chaos/soak/run-soak.js';

const RESULTS = new URL('./results/', import.meta.url);
const OTHER_TIMEOUT_MILLIS = 300_000;

endEverythingAfterwards();
const { seed, seconds } = chaosOptions(process.env, { seconds: 120, rounds: 1 });

test(
  'a long load leaves no keys, handles or memory behind',
  async () => {
    say(`soak: seed ${seed}, ${seconds} s`);
    const report = await runSoak(seed, seconds);
    mkdirSync(RESULTS, { recursive: true });
    writeFileSync(new URL('soak.json', RESULTS), `${JSON.stringify(report, undefined, 2)}\n`);
    expect(report.violations).toEqual([]);
  },
  seconds * 1000 + OTHER_TIMEOUT_MILLIS,
);
