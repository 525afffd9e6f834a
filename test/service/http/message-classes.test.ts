import { once } from 'node:events';
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { jest } from '@jest/globals';
import express, { type Express, type Request, type Response } from 'express';

import { messageClassesFor } from '../../../src/http/server/message-classes.js';
import { startTestApp } from '../../support/app.js';
import { callText } from '../../support/bulk-client.js';
import { send } from '../../support/http-client.js';
import { openConnection } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useTls } from '../../support/use-tls.js';

const tls = useTls();

/** How many requests and responses got another prototype after their creation. */
let changedMessages: number;
beforeEach(() => {
  changedMessages = 0;
  const { setPrototypeOf, getPrototypeOf } = Object;
  jest.spyOn(Object, 'setPrototypeOf').mockImplementation((target: object, to: object | null) => {
    const isMessage = target instanceof IncomingMessage || target instanceof ServerResponse;
    // A prototype that is set up is not a message itself.
    const isMade = Object.hasOwn(target, 'socket') || Object.hasOwn(target, '_header');
    if (isMessage && isMade && getPrototypeOf(target) !== to) changedMessages += 1;
    return setPrototypeOf(target, to) as object;
  });
});
afterEach(() => {
  jest.restoreAllMocks();
});

async function answerOne(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect((await send(`http://127.0.0.1:${port}`, 'GET', '/')).status).toBe(204);
  server.close();
  await once(server, 'close');
}

/** An app that answers 204, and the messages that it is given. */
function watchedApp(): { app: Express; seen: [Request, Response][] } {
  const seen: [Request, Response][] = [];
  const app = express().use((request, response) => {
    seen.push([request, response]);
    response.sendStatus(204);
  });
  return { app, seen };
}

test('Express changes the prototypes of messages of the default classes', async () => {
  await answerOne(createServer(watchedApp().app));

  expect(changedMessages).toBe(2);
});

test('Express does not change messages of the classes made for the app', async () => {
  const { app, seen } = watchedApp();
  const classes = messageClassesFor(app);
  await answerOne(createServer(classes, app));

  expect(changedMessages).toBe(0);
  const [request, response] = seen[0]!;
  expect(Object.getPrototypeOf(request)).toBe(classes.IncomingMessage.prototype);
  expect(Object.getPrototypeOf(response)).toBe(classes.ServerResponse.prototype);
  expect(app.request).toBe(classes.IncomingMessage.prototype);
  expect(app.response).toBe(classes.ServerResponse.prototype);
});

test("messages of the classes made for the app have Node's and Express's features", async () => {
  const { app, seen } = watchedApp();
  await answerOne(createServer(messageClassesFor(app), app));

  const [request, response] = seen[0]!;
  expect(request).toBeInstanceOf(IncomingMessage);
  expect(response).toBeInstanceOf(ServerResponse);
  expect(request.app).toBe(app);
  expect(response.app).toBe(app);
  expect(request.protocol).toBe('http');
});

test.each(['http:', 'https:'])('no request by %s leaves the fast path', async (protocol) => {
  const service = await startTestApp(protocol === 'https:' ? tls.settings : {});
  expect(new URL(service.url).protocol).toBe(protocol);
  const key = uniqueKey();
  await send(service.url, 'POST', `/rate/${key}?maxRequests=1`);
  await send(service.url, 'POST', `/rate/${key}`);
  await send(service.url, 'DELETE', `/rate/${key}/unknown`);
  const call = await openConnection(service.url);
  call.write(callText('POST', [{ key }]) + callText('DELETE', [{ key, request_id: 'unknown' }]));
  await call.receives(/"status":429[^]*"status":404/);
  call.disconnect();
  for (const path of ['/debug', `/debug/${key}`, '/healthz', '/unknown', '/rate/%zz']) {
    await send(service.url, 'GET', path);
  }
  await service.stop(0);

  expect(changedMessages).toBe(0);
});
