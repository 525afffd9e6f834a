import { useAppsByRules } from '../../../support/app-by-rules.js';
import { debugState } from '../../../support/debug-state.js';
import { approve, send } from '../../../support/http-client.js';

const serve = useAppsByRules();

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const RULE = {
  key_pattern: 'key',
  max_requests_per_window: 20,
  window_millis: MINUTE,
  limits: [
    { name: 'hour', max_hits_per_window: 100, window_millis: HOUR },
    { name: 'starts', max_requests_per_window: 5, window_millis: HOUR, releases_return: false },
  ],
};

test('the state of a key has its further limits, and what approvals take of each', async () => {
  const { url } = await serve([RULE]);
  await approve(url, 'key', '?hits=7');
  await send(url, 'DELETE', `/rate/key/${await approve(url, 'key', '?hits=9')}`);
  const state = {
    Key: 'key',
    Config: { WindowMillis: MINUTE, MaxRequestsPerWindow: 20, MaxRequestsInQueue: 400 },
    NumApprovedThisWindow: 7,
    NumDeniedThisWindow: 0,
    NumWaiting: 0,
    Limits: [
      { Name: 'hour', WindowMillis: HOUR, MaxHitsPerWindow: 100, NumApprovedThisWindow: 7 },
      { Name: 'starts', WindowMillis: HOUR, MaxRequestsPerWindow: 5, NumApprovedThisWindow: 2 },
    ],
    Found: true,
  };
  expect(await debugState(url, 'key')).toStrictEqual(state);
  const { json } = await send(url, 'GET', '/debug');
  expect(json()).toMatchObject({ Instances: { key: state } });
});
