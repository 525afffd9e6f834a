import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { startTestApp } from '../../support/app.js';
import { untilWaiting } from '../../support/debug-state.js';
import { approve, begin, type PendingRequest } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

let waiting: PendingRequest | undefined;
// Lets the app stop even if the grace does not end.
afterEach(() => waiting?.disconnect());

test('the grace ends even if garbage is collected during it', async () => {
  const app = await startTestApp({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' });
  const key = uniqueKey();
  await approve(app.url, key);
  waiting = begin(app.url, 'POST', `/rate/${key}?canWait=true`);
  await untilWaiting(app.url, key, 1);

  let isStopped = false;
  const stopped = app.stop(500).finally(() => (isStopped = true));
  await until(() => {
    collectGarbage();
    return isStopped;
  });
  await stopped;
  expect((await waiting.answer).status).toBe(503);
});
