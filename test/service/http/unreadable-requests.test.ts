import { once } from 'node:events';
import { createServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { jest } from '@jest/globals';
import express from 'express';
import type { Express, Request, Response } from 'express';

import { messageClassesFor } from '../../../src/http/server/server.js';
import { startTestApp } from '../../support/app.js';
import { callText } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { expectTransportError } from '../../support/expect-transport-error.js';
import { ratePath, send } from '../../support/http-client.js';
import { fullKey, untilWaiting, useHttpServices } from '../../support/http-service.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { limiterWithSlowList } from '../../support/watched-limiter.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { useTls } from '../../support/use-tls.js';

const startService = useHttpServices();
const tls = useTls();

describe('input that is not a request', () => {
  test.each([
    ['words', 'let me in\r\n\r\n'],
    ['a method that does not exist', requestText('FETCH', '/rate/key')],
    [
      'two ways to find its end',
      requestText('POST', '/rate/key', { 'Content-Length': '3', 'Transfer-Encoding': 'chunked' }),
    ],
  ])('such as %s gets a 400', async (_what, text) => {
    const service = await startService();
    const connection = await openConnection(service.url);
    connection.write(text);
    await connection.closed;

    expectTransportError(connection.received, '400 Bad Request');
    expect(service.unreadable).toEqual([expect.objectContaining({ status: 400 })]);
  });

  test('such as the broken body of a waiting check gets a 400, and the check loses its place', async () => {
    const service = await startService();
    const { key } = await fullKey(service);
    const connection = await openConnection(service.url);
    const path = `${ratePath(key)}?canWait=true`;
    connection.write(requestText('POST', path, { 'Transfer-Encoding': 'chunked' }));
    await untilWaiting(service, 1);
    connection.write('no number\r\n');
    await connection.closed;

    expectTransportError(connection.received, '400 Bad Request');
    await untilWaiting(service, 0);
  });

  test('behind a waiting check is not answered in place of the check', async () => {
    const service = await startService();
    const { key } = await fullKey(service);
    const connection = await openConnection(service.url);
    connection.write(requestText('POST', `${ratePath(key)}?canWait=true`));
    await untilWaiting(service, 1);
    connection.write('no request\r\n\r\n');
    await connection.closed;

    expect(connection.received).toBe('');
    await untilWaiting(service, 0);
  });

  test('in the middle of an answer adds nothing to the answer', async () => {
    const { limiter, end } = limiterWithSlowList();
    const service = await startService({ limiter });
    const connection = await openConnection(service.url);
    connection.write(requestText('GET', '/debug'));
    await connection.receives(/"Instances":\{\r\n$/);
    const answered = connection.received;
    connection.write('no request\r\n\r\n');
    await connection.closed;
    end();

    expect(answered).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(connection.received).toBe(answered);
  });

  test('after a request with a body gets a 400', async () => {
    const service = await startService();
    const connection = await openConnection(service.url);
    const headers = { 'Content-Length': '4' };
    connection.write(`${requestText('POST', ratePath(uniqueKey()), headers)}body`);
    await connection.receives(/request_id"[^]*\}$/);
    const answered = connection.received.length;
    connection.write('no request\r\n\r\n');
    await connection.closed;

    expectTransportError(connection.received.slice(answered), '400 Bad Request');
  });

  test('in the rest of a request that was answered gets no answer of its own', async () => {
    const service = await startService();
    const connection = await openConnection(service.url);
    const headers = { 'Transfer-Encoding': 'chunked' };
    connection.write(requestText('POST', ratePath(uniqueKey()), headers));
    await connection.receives(/request_id/);
    connection.write('no number\r\n');
    await connection.closed;

    expect(connection.received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

test.each([
  ['true', 1],
  ['false', 0],
])('LOG_4XX=%s also decides whether unreadable requests are logged', async (log4xx, lines) => {
  const app = await startTestApp({ LOG_4XX: log4xx });
  const connection = await openConnection(app.url);
  connection.write('no request\r\n\r\n');
  await connection.closed;
  await app.stop(0);

  const correlationId = expectTransportError(connection.received, '400 Bad Request');
  expect(app.log.filter(({ status }) => status === 400)).toEqual(
    Array(lines).fill(
      expect.objectContaining({ level: 'info', correlationId, code: 'HPE_INVALID_METHOD' }),
    ),
  );
});

/** Characters that Node's parser lets through, and how the error names them. */
const AMBIGUOUS: [name: string, character: string, error: string][] = [
  ['#', '#', '# must be written as %23 in the URL'],
  ['backslash', '\\', '\\ must be written as %5C in the URL'],
];

const PLACES: [place: string, targetOf: (key: string, character: string) => string][] = [
  ['in the key', (key, character) => `/rate/${key}${character}x`],
  ['after the key', (key, character) => `/rate/${key}${character}`],
  ['in the query', (key, character) => `/rate/${key}?canWait=false${character}`],
  ['in absolute form', (key, character) => `http://test/rate/${key}${character}x`],
];

describe('a target', () => {
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000' }));

  async function answerTo(target: string): Promise<string> {
    const connection = await openConnection(app.url);
    connection.write(requestText('POST', target, { Connection: 'close' }));
    await connection.closed;
    return connection.received;
  }

  async function expectRefused(target: string, error: string): Promise<void> {
    const answer = await answerTo(target);

    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    const body: unknown = JSON.parse(answer.split('\r\n\r\n')[1]!);
    expect(body).toStrictEqual({ error, code: 'INVALID_TARGET' });
  }

  async function expectNothingCounted(keys: string[]): Promise<void> {
    for (const key of keys) {
      expect(await debugState(app.url, key)).toStrictEqual({ Key: key, Found: false });
    }
  }

  describe.each(AMBIGUOUS)('with a raw %s', (_name, character, error) => {
    test.each(PLACES)(
      '%s gets a 400 that says so, and counts nothing',
      async (_place, targetOf) => {
        const key = uniqueKey();
        await expectRefused(targetOf(key, character), error);

        await expectNothingCounted([key, `${key}${character}x`, `${key}${character}`, `${key}/x`]);
      },
    );
  });

  test.each([...Array(32).keys(), 127])(
    'with the raw control character %d gets a 400',
    async (code) => {
      const key = uniqueKey();
      expectTransportError(
        await answerTo(`/rate/${key}${String.fromCharCode(code)}x`),
        '400 Bad Request',
      );

      await expectNothingCounted([key]);
    },
  );
});

describe('messages by class', () => {
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
});
