import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { bothLimiters } from '../../support/both-limiters.js';
import { startTestApp, type TestApp } from '../../support/app.js';
import { checkMany } from '../../support/bulk-client.js';
import { type DebugState, debugState, untilWaiting } from '../../support/debug-state.js';
import {
  type Answer,
  approve,
  approvedId,
  begin,
  bodyOf,
  ratePath,
  send,
} from '../../support/http-client.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { bearer, tokenFile } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const UNKNOWN_ID = '3f3c9e5d-8a07-4a4e-9d62-111111111111';
const OUT_OF_BOUNDS = 'holdMillis must be a whole number from 1000 to 86400000';
const HOURS = { WINDOW_MILLIS: '3600000' };

/** The seconds until there may be room, as `RateLimit` says. */
const secondsToRoom = ({ headers }: Answer): number =>
  Number(/;t=(\d+)$/.exec(String(headers.ratelimit))?.[1]);

const redis = useRedis();
const folder = useTemporaryFolder();

describe.each(bothLimiters(redis))('holds (%s limiter)', (_name, settings) => {
  let app: TestApp;
  let key: string;
  beforeAll(async () => {
    app = await startTestApp({ ...settings(), ...HOURS, MAX_REQUESTS: '10' });
  });
  afterAll(() => app.stop(0));
  beforeEach(() => {
    key = uniqueKey();
  });

  const check = (query: string) => send(app.url, 'POST', ratePath(key) + query);
  const amend = (id: string, query = '') => send(app.url, 'PUT', `${ratePath(key)}/${id}${query}`);
  const release = (id: string) => send(app.url, 'DELETE', `${ratePath(key)}/${id}`);
  const state = (): Promise<DebugState> => debugState(app.url, key);

  test('are among the approvals, and shown apart', async () => {
    expect((await check('')).status).toBe(200);
    expect(await state()).not.toHaveProperty('NumHeld');
    const id = await approve(app.url, key, '?holdMillis=60000&hits=3');
    expect(await state()).toMatchObject({ NumApprovedThisWindow: 4, NumHeld: 3 });
    const { Instances: all } = (await send(app.url, 'GET', '/debug')).json() as {
      Instances: Record<string, DebugState>;
    };
    expect(all[key]).toMatchObject({ NumApprovedThisWindow: 4, NumHeld: 3 });
    expect(bodyOf(await release(id))).toEqual([200, { request_id: id }]);
    expect(await state()).toMatchObject({ NumApprovedThisWindow: 1 });
    expect(await state()).not.toHaveProperty('NumHeld');
  });

  test('outlast the windows of other approvals', async () => {
    const short = await startTestApp({ ...settings(), WINDOW_MILLIS: '100', MAX_REQUESTS: '2' });
    const held = await approve(short.url, key, '?holdMillis=3600000');
    await approve(short.url, key);
    await until(async () => (await debugState(short.url, key)).NumApprovedThisWindow === 1);
    const full = await send(short.url, 'POST', `${ratePath(key)}?hits=2`);
    const path = `${ratePath(key)}/${held}`;
    const renewed = await send(short.url, 'PUT', path);
    const released = await send(short.url, 'DELETE', path);
    await short.stop(0);
    expect(full.status).toBe(429);
    expect([renewed.status, released.status]).toEqual([200, 200]);
  });

  test('lapse without a renewal, which serves the queue in mid-window', async () => {
    const lapsing = await approve(app.url, key, '?maxRequests=1&holdMillis=1000');
    const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true&holdMillis=60000`);
    const served = approvedId(await waiting.answer);
    expect(await state()).toMatchObject({ NumApprovedThisWindow: 1, NumHeld: 1 });
    expect(bodyOf(await amend(lapsing))).toEqual([404, { error: 'request not found', key }]);
    expect((await release(lapsing)).status).toBe(404);
    expect(bodyOf(await amend(served))).toEqual([200, { request_id: served, holdMillis: 60_000 }]);
  });

  test('are waited for until the deadline, since a release can be expected', async () => {
    const id = await approve(app.url, key, '?maxRequests=1&holdMillis=60000');
    const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true&maxWaitMillis=50000`);
    await untilWaiting(app.url, key, 1);
    await release(id);
    expect((await waiting.answer).status).toBe(200);
  });

  test('that may lapse before the window ends are what the quota waits for', async () => {
    const first = await check('?maxRequests=2');
    expect(secondsToRoom(first)).toBeGreaterThan(3000);
    const held = await check('?holdMillis=5000');
    expect(secondsToRoom(held)).toBeLessThanOrEqual(5);
    const denied = await check('');
    expect(denied.status).toBe(429);
    expect(secondsToRoom(denied)).toBeLessThanOrEqual(5);
    expect(Number(denied.headers['retry-after'])).toBeLessThanOrEqual(5);
    await release(approvedId(held));
    expect(secondsToRoom(await check(''))).toBeGreaterThan(3000);
  });

  test('that take all of the maximum are what the quota waits for, also after the window ends', async () => {
    const short = await startTestApp({ ...settings(), WINDOW_MILLIS: '1000', MAX_REQUESTS: '1' });
    const answer = await send(short.url, 'POST', `${ratePath(key)}?holdMillis=86400000`);
    await short.stop(0);
    expect(secondsToRoom(answer)).toBeGreaterThan(80_000);
  });

  test('belong to each element of a bulk request', async () => {
    const results = await checkMany(app.url, [
      { key, holdMillis: 60_000, hits: 2 },
      { key },
      { key, holdMillis: 999 },
      { key, holdMillis: '60000' },
    ]);
    expect(results).toMatchObject([
      { status: 200 },
      { status: 200 },
      { status: 400, error: OUT_OF_BOUNDS },
      { status: 400, error: OUT_OF_BOUNDS },
    ]);
    expect(await state()).toMatchObject({ NumApprovedThisWindow: 3, NumHeld: 2 });
  });

  test.each([
    ['?holdMillis=999', OUT_OF_BOUNDS],
    ['?holdMillis=86400001', OUT_OF_BOUNDS],
    ['?holdMillis=1500.5', OUT_OF_BOUNDS],
    ['?holdMillis=', OUT_OF_BOUNDS],
    ['?holdMillis=2000&holdMillis=2000', 'holdMillis must be given once'],
    ['?holdMilli=2000', 'unknown parameter holdMilli; did you mean holdMillis?'],
  ])('are not taken or renewed by %j', async (query, error) => {
    expect(bodyOf(await check(query))).toEqual([400, { error, key }]);
    expect(await state()).toEqual({ Key: key, Found: false });
    const id = await approve(app.url, key, '?holdMillis=60000');
    expect(bodyOf(await amend(id, query))).toEqual([400, { error, key }]);
    expect(bodyOf(await amend(id))).toEqual([200, { request_id: id, holdMillis: 60_000 }]);
  });

  describe('are renewed', () => {
    test('with the length that they have', async () => {
      const id = await approve(app.url, key, '?holdMillis=30000');
      for (let i = 0; i < 2; i += 1) {
        expect(bodyOf(await amend(id))).toEqual([200, { request_id: id, holdMillis: 30_000 }]);
      }
      expect(await state()).toMatchObject({ NumApprovedThisWindow: 1, NumHeld: 1 });
    });

    test('with another length, which stays', async () => {
      const id = await approve(app.url, key, '?holdMillis=30000');
      const longer = { request_id: id, holdMillis: 60_000 };
      expect(bodyOf(await amend(id, '?holdMillis=60000'))).toEqual([200, longer]);
      expect(bodyOf(await amend(id))).toEqual([200, longer]);
    });

    test('with a length so short that they lapse sooner, which serves the queue then', async () => {
      const id = await approve(app.url, key, '?maxRequests=1&holdMillis=86400000');
      const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
      await untilWaiting(app.url, key, 1);
      expect((await amend(id, '?holdMillis=1000')).status).toBe(200);
      expect((await waiting.answer).status).toBe(200);
      expect((await amend(id)).status).toBe(404);
    });

    test('with other hits, which make room if they are fewer', async () => {
      const id = await approve(app.url, key, '?hits=10&holdMillis=30000');
      const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
      await untilWaiting(app.url, key, 1);
      expect(bodyOf(await amend(id, '?hits=4&holdMillis=40000'))).toEqual([
        200,
        { request_id: id, hits: 4, holdMillis: 40_000 },
      ]);
      expect((await waiting.answer).status).toBe(200);
      expect(await state()).toMatchObject({ NumApprovedThisWindow: 5, NumHeld: 4 });
      expect(bodyOf(await amend(id, '?hits=0'))).toEqual([
        200,
        { request_id: id, hits: 0, holdMillis: 40_000 },
      ]);
      expect(await state()).toMatchObject({ NumApprovedThisWindow: 1 });
    });

    test('not once they are released, and not if they never were', async () => {
      const released = await approve(app.url, key, '?holdMillis=30000');
      await release(released);
      const ofWindow = await approve(app.url, key);
      for (const id of [released, ofWindow, UNKNOWN_ID, 'x']) {
        for (const query of ['', '?holdMillis=30000', '?hits=2&holdMillis=30000']) {
          expect(bodyOf(await amend(id, query))).toEqual([
            404,
            { error: 'request not found', key },
          ]);
        }
      }
      expect(await state()).toMatchObject({ NumApprovedThisWindow: 1 });
    });
  });

  describe('have a greatest number for each key', () => {
    let bounded: TestApp;
    beforeAll(async () => {
      bounded = await startTestApp({ ...settings(), ...HOURS, MAX_HOLDS_PER_KEY: '1' });
    });
    afterAll(() => bounded.stop(0));

    test('beyond which a check with a hold is a 503, and others are approved', async () => {
      const held = await approve(bounded.url, key, '?holdMillis=60000');
      const path = `${ratePath(key)}?holdMillis=60000`;
      const { status, headers, json } = await send(bounded.url, 'POST', path);
      expect([status, headers['retry-after'], json()]).toEqual([
        503,
        '1',
        { error: 'too many approvals of the key', key },
      ]);
      await approve(bounded.url, key);
      expect(await debugState(bounded.url, key)).toMatchObject({
        NumApprovedThisWindow: 2,
        NumHeld: 1,
        NumDeniedThisWindow: 0,
      });
      await send(bounded.url, 'DELETE', `${ratePath(key)}/${held}`);
      await approve(bounded.url, key, '?holdMillis=60000');
    });

    test('beyond which a check with a hold waits until one ends', async () => {
      const held = await approve(bounded.url, key, '?holdMillis=60000');
      const path = `${ratePath(key)}?holdMillis=60000&canWait=true`;
      const waiting = begin(bounded.url, 'POST', path);
      await untilWaiting(bounded.url, key, 1);
      await send(bounded.url, 'DELETE', `${ratePath(key)}/${held}`);
      expect((await waiting.answer).status).toBe(200);
    });
  });
});

describe('holds may be forbidden, or bounded,', () => {
  const forbidden = 'holding approvals is disabled for this key';
  const tooLong = (max: number): string => `holdMillis must be at most ${max} for this key`;

  /** Asks a service with these settings to hold an approval in each way. @returns the errors; undefined for none */
  async function errorsOf(app: TestApp, key: string, holdMillis: number): Promise<unknown[]> {
    const query = `?holdMillis=${holdMillis}`;
    const errorIn = ({ status, json }: Answer): unknown =>
      status === 200 ? undefined : [status, (json() as { error: string }).error];
    const [element] = await checkMany(app.url, [{ key, holdMillis }]);
    const ofElement =
      element?.status === 200
        ? undefined
        : [element?.status, element && 'error' in element && element.error];
    return [
      errorIn(await send(app.url, 'POST', ratePath(key) + query)),
      ofElement,
      errorIn(await send(app.url, 'PUT', `${ratePath(key)}/${UNKNOWN_ID}${query}`)),
    ];
  }

  const none = [undefined, undefined, [404, 'request not found']];
  const each = (status: number, error: string): unknown[] =>
    Array.from({ length: 3 }, () => [status, error]);

  test('by a setting', async () => {
    const key = uniqueKey();
    const app = await startTestApp({ ...HOURS, REQUESTS_CAN_HOLD: 'false' });
    expect(await errorsOf(app, key, 1000)).toEqual(each(403, forbidden));
    expect(await debugState(app.url, key)).toEqual({ Key: key, Found: false });
    await app.stop(0);
  });

  test('by the setting of the longest one', async () => {
    const key = uniqueKey();
    const app = await startTestApp({ ...HOURS, MAX_HOLD_MILLIS: '5000' });
    expect(await errorsOf(app, key, 5001)).toEqual(each(403, tooLong(5000)));
    expect(await debugState(app.url, key)).toEqual({ Key: key, Found: false });
    expect(await errorsOf(app, key, 5000)).toEqual(none);
    await app.stop(0);
  });

  test('by rules, which win over the settings', async () => {
    const CONFIG_FILE = join(folder, uniqueKey());
    const rules = [
      { key_pattern: 'yes', requests_can_hold: true, max_hold_millis: 60_000 },
      { key_pattern: 'short', requests_can_hold: true },
    ];
    await writeFile(CONFIG_FILE, JSON.stringify({ keys: rules }));
    const bounds = { REQUESTS_CAN_HOLD: 'false', MAX_HOLD_MILLIS: '5000' };
    const app = await startTestApp({ ...HOURS, ...bounds, CONFIG_FILE });
    expect(await errorsOf(app, 'yes', 60_000)).toEqual(none);
    expect(await errorsOf(app, 'yes', 60_001)).toEqual(each(403, tooLong(60_000)));
    expect(await errorsOf(app, 'short', 5001)).toEqual(each(403, tooLong(5000)));
    expect(await errorsOf(app, 'other', 1000)).toEqual(each(403, forbidden));
    await app.stop(0);
  });
});

describe.each(bothLimiters(redis))('rules that change (%s limiter)', (_name, settings) => {
  test.each([
    ['forbid holds', { requests_can_hold: false }, 'holding approvals is disabled for this key'],
    ['shorten them', { max_hold_millis: 5000 }, 'holdMillis must be at most 5000 for this key'],
  ])('and %s apply to renewals, and corrections do not renew', async (_what, change, error) => {
    const CONFIG_FILE = join(folder, uniqueKey());
    const write = (rule: object) =>
      writeFile(CONFIG_FILE, JSON.stringify({ keys: [{ key_pattern: 'held', ...rule }] }));
    await write({});
    const app = await startTestApp({ ...settings(), ...HOURS, CONFIG_FILE });
    const id = await approve(app.url, 'held', '?holdMillis=600000&hits=2');
    const put = (query: string) => send(app.url, 'PUT', `${ratePath('held')}/${id}${query}`);
    const leftAfter = async (query: string): Promise<number> =>
      ((await put(query)).json() as { holdMillis: number }).holdMillis;
    expect(await leftAfter('')).toBe(600_000);
    await write(change);
    await until(async () => (await put('')).status === 403);
    expect(bodyOf(await put(''))).toEqual([403, { error, key: 'held' }]);
    expect(bodyOf(await put('?holdMillis=600000'))).toEqual([403, { error, key: 'held' }]);
    // A renewal would give it all of its time again.
    await until(async () => (await leftAfter('?hits=3')) < 600_000);
    expect(await debugState(app.url, 'held')).toMatchObject({ NumHeld: 3 });
    const isShorter = 'max_hold_millis' in change;
    expect((await put('?holdMillis=5000')).status).toBe(isShorter ? 200 : 403);
    await app.stop(0);
  });
});

test('a shadow rule holds what it approves, and not what it would deny', async () => {
  const CONFIG_FILE = join(folder, uniqueKey());
  const rule = { key_pattern: 'tried', max_requests_per_window: 1, shadow: true };
  await writeFile(CONFIG_FILE, JSON.stringify({ keys: [rule] }));
  const app = await startTestApp({ ...HOURS, CONFIG_FILE });
  const renewed: number[] = [];
  for (let i = 0; i < 2; i += 1) {
    const id = await approve(app.url, 'tried', '?holdMillis=60000');
    renewed.push((await send(app.url, 'PUT', `${ratePath('tried')}/${id}`)).status);
  }
  expect(renewed).toEqual([200, 404]);
  await app.stop(0);
});

test('a hold and its renewal take the scope check', async () => {
  const asks = { name: 'asks', token: 'a'.repeat(40), scopes: ['check'] };
  const givesBack = { name: 'gives-back', token: 'b'.repeat(40), scopes: ['release'] };
  const app = await startTestApp({ AUTH_TOKENS_FILE: await tokenFile(folder, asks, givesBack) });
  const key = uniqueKey();
  const query = '?holdMillis=60000';
  const id = approvedId(await send(app.url, 'POST', ratePath(key) + query, bearer(asks)));
  const path = `${ratePath(key)}/${id}`;
  expect((await send(app.url, 'PUT', path, bearer(givesBack))).status).toBe(403);
  expect((await send(app.url, 'PUT', path, bearer(asks))).status).toBe(200);
  await app.stop(0);
});
