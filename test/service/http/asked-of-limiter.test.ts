import { useAppsByRules } from '../../support/app-by-rules.js';
import { checkMany } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { bodyOf, ratePath, send } from '../../support/http-client.js';
import { type HttpService, smallLimiter, useHttpServices } from '../../support/http-service.js';
import { uniqueKey } from '../../support/unique-key.js';

// What the limiter makes of it is in test/support/behaviour.

const ID = '0197c3a2-8b1e-7f00-8d5a-111111111111';

const startService = useHttpServices();
const serveByRules = useAppsByRules();
let service: HttpService;
let key: string;
/** The checks and operations of the limiter, with what they were asked. */
let asked: unknown[][];
beforeEach(async () => {
  key = uniqueKey();
  asked = [];
  const limiter = smallLimiter();
  const check = limiter.check.bind(limiter);
  limiter.check = (...args) => {
    asked.push(['check', ...args]);
    return check(...args);
  };
  const operate = limiter.ask.bind(limiter);
  limiter.ask = (...args) => {
    asked.push(args);
    return operate(...args);
  };
  service = await startService({ limiter });
});

const ask = (method: string, rest: string, headers = {}) =>
  send(service.url, method, ratePath(key) + rest, headers);

test('a check asks the limiter for all that its parameters and its preference say', async () => {
  const query =
    `requestId=${ID}&canWait=true&hits=2&holdMillis=60000&holder=w%C3%B6rker%207` +
    '&maxWaitMillis=7000&keepMillis=5000&maxRequests=3&maxRequestsInQueue=4&windowMillis=9000';
  const { status } = await ask('POST', `?${query}`, { prefer: 'wait=6' });
  expect(status).toBe(200);
  expect(asked).toEqual([
    [
      'check',
      expect.objectContaining({
        key,
        requestId: ID,
        canWait: true,
        hits: 2,
        holdMillis: 60_000,
        holder: 'wörker 7',
        maxWaitMillis: 7000,
        keepMillis: 5000,
        answerMillis: 6000,
        maxRequests: 3,
        maxRequestsInQueue: 4,
        windowMillis: 9000,
      }),
      expect.anything(),
    ],
  ]);
});

test('an element of a bulk request asks the limiter for all that its fields say', async () => {
  const fields = {
    key,
    requestId: ID,
    hits: 2,
    holdMillis: 60_000,
    holder: 'wörker 7',
    maxRequests: 3,
    maxRequestsInQueue: 4,
    windowMillis: 9000,
  };
  const results = await checkMany(service.url, [fields]);
  expect(results).toEqual([{ status: 200, request_id: ID }]);
  expect(asked).toMatchObject([['check', { ...fields, canWait: false }]]);
});

test('a check without parameters asks the limiter for nothing but an approval of the key', async () => {
  await ask('POST', '');
  const [[method, request]] = asked as [[string, object]];
  const given = Object.entries(request).filter(([, value]) => value !== undefined);
  expect(method).toBe('check');
  expect(Object.fromEntries(given)).toEqual({ key, canWait: false });
});

test('a peek asks the limiter with its hits and its hold', async () => {
  await ask('GET', '?peek=true&hits=1&holdMillis=60000');
  expect(asked).toMatchObject([['peek', { key, hits: 1, holdMillis: 60_000 }]]);
});

test('a correction and a renewal ask the limiter for both, and their answer says what they got', async () => {
  await ask('POST', `?requestId=${ID}&holdMillis=60000&maxRequests=3`);
  const answer = await ask('PUT', `/${ID}?hits=2&holdMillis=90000`);
  expect(bodyOf(answer)).toEqual([200, { request_id: ID, hits: 2, holdMillis: 90_000 }]);
  expect(asked[1]).toMatchObject(['amend', { key, requestId: ID, hits: 2, holdMillis: 90_000 }]);
});

test('a pause asks the limiter for its length, and its answer says it', async () => {
  expect(bodyOf(await ask('PUT', '?pauseMillis=5000'))).toEqual([200, { key, pauseMillis: 5000 }]);
  expect(asked).toEqual([['pause', { key, millis: 5000 }]]);
});

test('a report asks the limiter with what remains, until when, and of which limit', async () => {
  await ask('PUT', '?remaining=0&resetMillis=5000&limit=hour');
  await ask('PUT', '?remaining=0');
  expect(asked).toEqual([
    ['reportRemaining', { key, remaining: 0, resetMillis: 5000, limit: 'hour' }],
    ['reportRemaining', { key, remaining: 0 }],
  ]);
});

test('a release, a question for a status and the end of a hold name the request and the handle', async () => {
  await ask('GET', `/${ID.toUpperCase()}`);
  await ask('DELETE', `/${ID}`);
  await ask('DELETE', '/holders/0123456789abcdef');
  expect(asked).toEqual([
    ['statusOf', { key, requestId: ID }],
    ['release', { key, requestId: ID }],
    ['endHold', { key, handle: '0123456789abcdef' }],
  ]);
});

test('the state of a key has the times of its pause and of its holds', async () => {
  const { url, clock } = await serveByRules([]);
  const path = ratePath(key);
  await send(url, 'POST', `${path}?holdMillis=60000&holder=host:1`);
  await send(url, 'PUT', `${path}?pauseMillis=9000`);
  await clock.advance(5000);
  expect(await debugState(url, key)).toMatchObject({
    PausedMillis: 4000,
    Holders: [{ Holder: 'host:1', HeldMillis: 5000, LapseMillis: 55_000, Hits: 1 }],
  });
});
