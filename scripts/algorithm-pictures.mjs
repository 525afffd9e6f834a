// `npm run docs:pictures`: lets the same callers wait for three keys, whose limits have the three algorithms, for
// a minute, and draws docs/images/<algorithm>.svg of what was approved.
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

import { build, installDependencies } from './lib/prepare.mjs';
import { picture } from './algorithms/picture.mjs';
import { startReplica } from './demo/processes.mjs';

const ALGORITHMS = {
  fixed_window: {},
  sliding_window: { WINDOW_STEPS: '10' },
  token_bucket: { BURST: '1' },
};
const MAXIMUM = 10;
const WINDOW_MILLIS = 10_000;
const RUN_MILLIS = 60_000;
/** In the first window, callers come late, so that a fixed window's end follows soon. They stop before the run ends. */
const WAIT_FROM = 8_000;
const WAIT_UNTIL = 45_000;
/** More than there is ever room for, so that somebody waits all the time. */
const CALLERS = 2 * MAXIMUM;

installDependencies();
build();
const runs = Object.entries(ALGORITHMS).map(async ([algorithm, settings]) => {
  const { url } = await startReplica(algorithm, {
    ALGORITHM: algorithm,
    MAX_REQUESTS: String(MAXIMUM),
    WINDOW_MILLIS: String(WINDOW_MILLIS),
    ...settings,
  });
  return [algorithm, await approvalsOf(`${url}/rate/key?canWait=true`)];
});
for (const [algorithm, approvals] of await Promise.all(runs)) {
  const drawn = picture({
    approvals,
    maximum: MAXIMUM,
    windowMillis: WINDOW_MILLIS,
    millis: RUN_MILLIS,
  });
  writeFileSync(new URL(`../docs/images/${algorithm}.svg`, import.meta.url), drawn);
}
process.exit(0);

/** @returns when checks were approved, in milliseconds from the first one on */
async function approvalsOf(check) {
  const approvals = [];
  const ask = async (signal) => {
    const { status } = await fetch(check, { method: 'POST', signal });
    if (status === 200) approvals.push(performance.now() - start);
  };
  const start = performance.now();
  await ask();
  await delay(WAIT_FROM);
  const end = AbortSignal.timeout(WAIT_UNTIL - WAIT_FROM);
  const caller = async () => {
    while (!end.aborted) await ask(end).catch(() => undefined);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  return approvals;
}
