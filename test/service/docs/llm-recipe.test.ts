import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { debugState } from '../../support/debug-state.js';
import { ROOT } from '../../support/docs/pages.js';
import { useGuidesApp } from '../../support/docs/guides-app.js';
import { useStandInLlm } from '../../support/docs/stand-in-llm.js';

const run = promisify(execFile);
const EXAMPLE = 'clients/node/examples/llm-at-once.mjs';
/** Instead of a minute. */
const MINUTE_MILLIS = 2500;
/** The windows are longer, by more than a call may be late on a busy machine. */
const WINDOW_MILLIS = MINUTE_MILLIS + 2000;

const sluice = useGuidesApp((rules) =>
  rules.replaceAll('window_millis: 61000', `window_millis: ${WINDOW_MILLIS}`),
);
const vendor = useStandInLlm({ MINUTE_MILLIS: String(MINUTE_MILLIS) });
const ask = () => fetch(vendor.url, { method: 'POST', body: '{}' });

test('three processes never exceed the limits of the API, and corrected hits make room', async () => {
  const env = { PATH: process.env.PATH, SLUICE_URL: sluice.url, LLM_URL: vendor.url };
  const worker = () => run(process.execPath, [EXAMPLE, '15'], { cwd: ROOT, env });

  const printed = await Promise.all([worker(), worker(), worker()]);

  expect(printed.map(({ stdout }) => stdout)).toEqual([
    '15 answers\n',
    '15 answers\n',
    '15 answers\n',
  ]);
  const { mostCalls, mostTokens, ...seen } = await vendor.stats();
  expect(seen).toEqual({ answered: 45, refused: 0, mostAtOnce: 3 });
  // With the estimate of 1,000 tokens a call, only ten would fit in a minute: the corrections make room.
  expect(mostCalls).toBeGreaterThan(10);
  expect(mostCalls).toBeLessThanOrEqual(20);
  expect(mostTokens).toBeLessThanOrEqual(10_000);
  expect((await debugState(sluice.url, 'llm-api')).NumHeld).toBeUndefined();
});

test('without Sluice, the API refuses a fourth call at once', async () => {
  const statuses = (await Promise.all([ask(), ask(), ask(), ask()])).map(({ status }) => status);

  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0);
});
