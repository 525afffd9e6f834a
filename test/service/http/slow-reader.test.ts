import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import express, { type Response } from 'express';
import { pino } from 'pino';

import { parseSettings } from '../../../src/config/settings.js';
import { eventLoop } from '../../../src/common/ticks.js';
import { Turns } from '../../../src/service/deciding/turns.js';
import { openAccess } from '../../../src/service/callers/access.js';
import { HttpRequest } from '../../../src/http/intake/http-request.js';
import { debugAll } from '../../../src/http/routes/debug-handlers.js';
import { logAnswersOf } from '../../../src/http/replies/request-log.js';
import type { InstanceState, Limiter } from '../../../src/limiter/limiter.js';
import { withoutRules } from '../../../src/rules/rules.js';
import { serve, type ServedApp } from '../../support/http-app.js';
import { ManualClock } from '../../support/manual-clock.js';
import { requestText } from '../../support/raw-http.js';
import { until } from '../../support/until.js';

const READ_TIMEOUT_MILLIS = 30_000;
const INSTANCE: InstanceState = {
  key: 'x'.repeat(512),
  limits: { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 1 },
  approved: 0,
  held: 0,
  denied: 0,
  waiting: 0,
  pausedMillis: 0,
};
const PAGE = Array.from({ length: 100 }, () => INSTANCE);

/** Lists more than all buffers hold until the test sets `isEnough`, and one more page after `finish()`. */
class LimiterStub implements Pick<Limiter, 'list'> {
  pages = 0;
  isEnough = false;
  isLeft = false;
  finish!: () => void;
  readonly #finish = new Promise<void>((resolve) => (this.finish = resolve));

  async *list(): AsyncIterable<readonly InstanceState[]> {
    for (; !this.isEnough; this.pages += 1) yield PAGE;
    this.isLeft = true;
    await this.#finish;
    this.pages += 1;
    yield PAGE;
  }
}

const NO_RULES = withoutRules(parseSettings({}));

let limiter: LimiterStub;
let clock: ManualClock;
let app: ServedApp;
let client: Socket;
let response: Response | undefined;

/** A client that has asked for a listing, and reads nothing. */
beforeEach(async () => {
  limiter = new LimiterStub();
  clock = new ManualClock(0);
  response = undefined;
  const server = express();
  logAnswersOf(server, pino({ level: 'silent' }), parseSettings({}), new Set());
  server.use((request, ours, next) => {
    ours.locals.context = new HttpRequest(request);
    response = ours;
    next();
  });
  server.get(
    '/debug',
    debugAll(
      limiter as Partial<Limiter> as Limiter,
      NO_RULES,
      openAccess(),
      new Turns(eventLoop),
      clock,
    ),
  );
  app = await serve(server);
  client = connect(Number(new URL(app.url).port), '127.0.0.1');
  await once(client, 'connect');
  // The service may cut the connection with a reset.
  client.on('error', () => undefined);
  client.write(requestText('GET', '/debug', { Connection: 'close' }));
  await until(() => response?.writableNeedDrain);
});
afterEach(async () => {
  client.destroy();
  limiter.isEnough = true;
  limiter.finish();
  await app.close();
});

test('a client that reads nothing of a listing for 30 s is cut', async () => {
  await clock.advance(READ_TIMEOUT_MILLIS - 1);
  expect(response!.destroyed).toBe(false);
  await clock.advance(1);
  expect(response!.destroyed).toBe(true);

  client.resume();
  await until(() => client.closed);
});

test('a client that reads late gets the whole listing, however long it takes', async () => {
  let received = '';
  await clock.advance(READ_TIMEOUT_MILLIS - 1);
  limiter.isEnough = true;
  client.setEncoding('latin1').on('data', (text: string) => (received += text));
  await until(() => limiter.isLeft);
  await clock.advance(READ_TIMEOUT_MILLIS);
  limiter.finish();
  await until(() => client.closed);

  expect(received.match(/"Key":/g)).toHaveLength(limiter.pages * PAGE.length);
  expect(received).toMatch(/\}\}\r\n0\r\n\r\n$/);
});
