import { once } from 'node:events';

import express, { type Response } from 'express';

import { waitForDrain } from '../../../../src/http/routes/wait-for-drain.js';
import { serve } from '../../../support/http-app.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { openConnection, requestText } from '../../../support/raw-http.js';
import { until } from '../../../support/until.js';

const READ_TIMEOUT_MILLIS = 30_000;
const MUCH = Buffer.alloc(1024 * 1024);

test('an answer that waits for its turn on a connection is not held forever', async () => {
  const clock = new ManualClock(0);
  const responses: Response[] = [];
  const app = express();
  app.use((_request, response) => {
    responses.push(response);
  });
  const server = await serve(app);
  const connection = await openConnection(server.url);
  connection.write(requestText('GET', '/first') + requestText('GET', '/second'));
  const second = await until(() => responses[1]);
  expect(second.write(MUCH)).toBe(false);

  const isRead = waitForDrain(second, clock);
  const first = once(responses[0]!, 'close');
  connection.disconnect();
  await first;
  await clock.advance(READ_TIMEOUT_MILLIS);

  expect(await isRead).toBe(false);
  await server.close();
});
