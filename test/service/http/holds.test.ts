import type { TestApp } from '../../support/app.js';
import { checkMany } from '../../support/bulk-client.js';
import { keyPath } from '../../support/dashboard/dashboard-page.js';
import { type DebugHolder, debugState, untilWaiting } from '../../support/debug-state.js';
import { approve, approvedId, begin, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp, useApps } from '../../support/use-apps.js';

const UNKNOWN_ID = '3f3c9e5d-8a07-4a4e-9d62-111111111111';
const start = useApps();

const OUT_OF_BOUNDS = 'holdMillis must be a whole number from 1000 to 86400000';
const HOURS = { WINDOW_MILLIS: '3600000' };
const FORBIDDEN = 'holding approvals is disabled for this key';

const tooLong = (max: number): string => `holdMillis must be at most ${max} for this key`;

describe('holds', () => {
  const app = useApp(() => ({
    ...HOURS,
    MAX_REQUESTS: '10',
  }));
  const key = useHttpKey(() => app);

  test.each([
    ['?holdMillis=999', OUT_OF_BOUNDS],
    ['?holdMillis=86400001', OUT_OF_BOUNDS],
  ])('are not taken or renewed by %j', async (query, error) => {
    expect(bodyOf(await key.check(query))).toEqual([400, { error, key: key.name }]);
    expect(await key.state()).toEqual({ Key: key.name, Found: false });
    const id = await key.approve('?holdMillis=60000');
    expect(bodyOf(await key.amend(id, query))).toEqual([400, { error, key: key.name }]);
  });
});

describe('holds may be forbidden, or bounded,', () => {
  /** Asks a service to hold an approval in each way. Returns the errors; undefined for none. */
  async function errorsOf(app: { url: string }, key: string, holdMillis: number) {
    const query = `?holdMillis=${holdMillis}`;
    const [element] = await checkMany(app.url, [{ key, holdMillis }]);
    const answers = [
      await send(app.url, 'POST', ratePath(key) + query),
      await send(app.url, 'PUT', `${ratePath(key)}/${UNKNOWN_ID}${query}`),
    ];
    const bodies = [
      element,
      ...answers.map(({ status, json }) => ({ status, ...(json() as object) })),
    ];
    return bodies.map((body) => (body && 'error' in body ? [body.status, body.error] : undefined));
  }

  const none = [undefined, undefined, [404, 'request not found']];
  const each = (status: number, error: string): unknown[] =>
    Array.from({ length: 3 }, () => [status, error]);

  test('by rules, which win over the settings', async () => {
    const rules = [
      { key_pattern: 'yes', requests_can_hold: true, max_hold_millis: 60_000 },
      { key_pattern: 'short', requests_can_hold: true },
    ];
    const bounds = { REQUESTS_CAN_HOLD: 'false', MAX_HOLD_MILLIS: '5000' };
    const app = await start({ ...HOURS, ...bounds }, { rules });
    expect(await errorsOf(app, 'yes', 60_000)).toEqual(none);
    expect(await errorsOf(app, 'yes', 60_001)).toEqual(each(403, tooLong(60_000)));
    expect(await errorsOf(app, 'short', 5001)).toEqual(each(403, tooLong(5000)));
    expect(await errorsOf(app, 'other', 1000)).toEqual(each(403, FORBIDDEN));
  });
});

describe('rules that change', () => {
  test.each([
    ['forbid holds', { requests_can_hold: false }, FORBIDDEN],
    ['shorten them', { max_hold_millis: 5000 }, tooLong(5000)],
  ])('and %s apply to renewals, and corrections do not renew', async (_what, change, error) => {
    const rule = { key_pattern: 'held' };
    const app = await start(HOURS, { rules: [rule] });
    const id = await approve(app.url, 'held', '?holdMillis=600000&hits=2');
    const put = (query: string) => send(app.url, 'PUT', `${ratePath('held')}/${id}${query}`);
    const leftAfter = async (query: string): Promise<number> =>
      ((await put(query)).json() as { holdMillis: number }).holdMillis;
    expect(await leftAfter('')).toBe(600_000);
    await app.setRules({ ...rule, ...change });
    expect(bodyOf(await put(''))).toEqual([403, { error, key: 'held' }]);
    expect(bodyOf(await put('?holdMillis=600000'))).toEqual([403, { error, key: 'held' }]);
    // A renewal would give it all of its time again.
    await until(async () => (await leftAfter('?hits=3')) < 600_000);
    expect(await debugState(app.url, 'held')).toMatchObject({ NumHeld: 3 });
    const isShorter = 'max_hold_millis' in change;
    expect((await put('?holdMillis=5000')).status).toBe(isShorter ? 200 : 403);
  });
});

test('a shadow rule holds what it approves, and not what it would deny', async () => {
  const rule = { key_pattern: 'tried', max_requests_per_window: 1, shadow: true };
  const app = await start(HOURS, { rules: [rule] });
  const renewed: number[] = [];
  for (let i = 0; i < 2; i += 1) {
    const id = await approve(app.url, 'tried', '?holdMillis=60000');
    renewed.push((await send(app.url, 'PUT', `${ratePath('tried')}/${id}`)).status);
  }
  expect(renewed).toEqual([200, 404]);
});

const CALLER = { name: 'caller', token: 'token-of-the-caller', scopes: ['check', 'release'] };
const VIEWER = { name: 'viewer', token: 'token-of-the-viewer', scopes: ['debug'] };
const OPERATOR = {
  name: 'operator',
  token: 'token-of-the-operator',
  scopes: ['debug', 'configure'],
};
const STRANGER = {
  name: 'stranger',
  token: 'token-of-a-stranger',
  scopes: ['configure'],
  key_patterns: ['other'],
};
const MUST = 'holder must be text of 1 to 64 bytes of UTF-8 without control characters';

describe('holders', () => {
  const app = useApp(() => ({ ADMIN_PORT: '0', WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }), {
    tokens: [CALLER, VIEWER, OPERATOR, STRANGER],
  });
  let key: string;
  beforeEach(() => {
    key = uniqueKey();
  });

  const check = (query: string) =>
    send(app.url, 'POST', `${ratePath(key)}?${query}`, bearer(CALLER));
  const hold = async (holder: string): Promise<string> =>
    approvedId(await check(`holdMillis=60000&holder=${encodeURIComponent(holder)}`));
  const holders = async (): Promise<readonly DebugHolder[]> =>
    (await debugState(app.adminUrl, key, bearer(VIEWER))).Holders ?? [];
  const end = (handle: string, who: { token: string } = OPERATOR) =>
    send(app.url, 'DELETE', `${ratePath(key)}/holders/${handle}`, bearer(who));

  test('are shown without the request id', async () => {
    const id = await hold('wörker 7: ⚙');
    const { text } = await send(app.adminUrl, 'GET', `/debug/${key}`, bearer(VIEWER));
    expect(text).not.toContain(id);
    const list = await send(app.adminUrl, 'GET', '/debug', bearer(VIEWER));
    expect(list.text).not.toContain('Holders');
    const [holder] = await holders();
    expect(holder).toEqual({
      Handle: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      Holder: 'wörker 7: ⚙',
      HeldMillis: expect.any(Number) as number,
      LapseMillis: expect.any(Number) as number,
      Hits: 1,
    });
  });

  test.each([
    ['holdMillis=60000&holder=', MUST],
    [`holdMillis=60000&holder=${'a'.repeat(65)}`, MUST],
    [`holdMillis=60000&holder=${'%C3%A4'.repeat(33)}`, MUST],
    ['holdMillis=60000&holder=a%0Ab', MUST],
    ['holdMillis=60000&holder=a%C2%85b', MUST],
    ['holder=a', 'holder must be used with holdMillis'],
    ['holder=a&peek=true', 'holder must be left out with peek=true'],
  ])('a check with %s is rejected', async (query, error) => {
    const answer = await check(query);
    expect([answer.status, answer.json()]).toEqual([400, { error, key }]);
    expect(await debugState(app.adminUrl, key, bearer(VIEWER))).toEqual({ Key: key, Found: false });
  });

  test.each([
    [{ holdMillis: 60_000, holder: 'a\u0000' }, MUST],
    [{ holdMillis: 60_000, holder: '\ud800' }, MUST],
    [{ holdMillis: 60_000, holder: 7 }, MUST],
    [{ holder: 'a' }, 'holder must be used with holdMillis'],
  ])('an element with %j is rejected', async (element, error) => {
    const results = await checkMany(app.url, [{ key, ...element }], bearer(CALLER));
    expect(results).toEqual([{ status: 400, error }]);
  });

  test('a hold that is ended serves the queue, and its next renewal is a 404', async () => {
    const id = await hold('stuck:1');
    const waiting = begin(
      app.url,
      'POST',
      `${ratePath(key)}?canWait=true&holdMillis=60000&holder=next%3A1`,
      bearer(CALLER),
    );
    await untilWaiting(app.adminUrl, key, 1, bearer(VIEWER));
    const [{ Handle: handle }] = (await holders()) as [DebugHolder];

    const ended = await end(handle.toUpperCase());

    expect([ended.status, ended.json()]).toEqual([200, { key, handle: handle.toUpperCase() }]);
    approvedId(await waiting.answer);
    expect(await holders()).toMatchObject([{ Holder: 'next:1' }]);
    const renewal = await send(app.url, 'PUT', `${ratePath(key)}/${id}`, bearer(CALLER));
    expect([renewal.status, renewal.json()]).toEqual([404, { error: 'request not found', key }]);
    expect([(await end(handle)).status, (await end('unknown')).json()]).toEqual([
      404,
      { error: 'no such holder', key },
    ]);
  });

  describe('in the dashboard', () => {
    const detail = async (app: TestApp, who: { token: string }): Promise<unknown> =>
      (await send(app.adminUrl, 'GET', keyPath('/ui/data/key', key), bearer(who))).json();

    test('are listed, and can be ended by who may configure', async () => {
      await hold('host:1');
      const [{ Handle: handle }] = (await holders()) as [DebugHolder];
      const listed = [{ handle, holder: 'host:1' }];
      expect(await detail(app, VIEWER)).toMatchObject({
        holdings: listed,
        may: { endHolds: false },
      });
      expect(await detail(app, OPERATOR)).toMatchObject({
        holdings: listed,
        may: { endHolds: true },
      });
      const path = keyPath('/ui/holds/end', key, { handle });
      const statusOf = async (who: { token: string }) =>
        (await send(app.adminUrl, 'POST', path, bearer(who))).status;
      expect([await statusOf(VIEWER), await statusOf(STRANGER)]).toEqual([403, 403]);
      expect([await statusOf(OPERATOR), await statusOf(OPERATOR)]).toEqual([200, 404]);
      expect(await holders()).toEqual([]);
    });
  });
});

test('a correction takes the scope check, and also the scope release if it gives everything back', async () => {
  const asks = { name: 'asks', token: 'a'.repeat(40), scopes: ['check'] };
  const givesBack = { name: 'gives-back', token: 'b'.repeat(40), scopes: ['release'] };
  const both = { name: 'both', token: 'c'.repeat(40), scopes: ['check', 'release'] };
  const app = await start(HOURS, { tokens: [asks, givesBack, both] });
  const key = uniqueKey();
  const id = approvedId(await send(app.url, 'POST', ratePath(key), bearer(asks)));
  const correct = async (hits: number, caller: typeof asks): Promise<unknown[]> =>
    bodyOf(await send(app.url, 'PUT', `${ratePath(key)}/${id}?hits=${hits}`, bearer(caller)));
  const lacks = (scope: string) => [403, { error: `the token lacks the scope ${scope}`, key }];
  expect(await correct(2, givesBack)).toEqual(lacks('check'));
  expect(await correct(2, asks)).toEqual([200, { request_id: id, hits: 2 }]);
  expect(await correct(0, asks)).toEqual(lacks('release'));
  expect(await correct(0, both)).toEqual([200, { request_id: id, hits: 0 }]);
});

test('a correction has the bound of its rule', async () => {
  const [key, max] = ['bounded', 7];
  const rule = { key_pattern: key, max_requests_per_window: 5, max_corrected_hits: max };
  const app = await start(HOURS, { rules: [rule] });
  const id = await approve(app.url, key);
  const correct = (hits: number) => send(app.url, 'PUT', `${ratePath(key)}/${id}?hits=${hits}`);
  const error = `hits must be at most ${max} in a correction for this key, not ${max + 1}`;
  expect(bodyOf(await correct(max + 1))).toEqual([403, { error, key }]);
  expect((await correct(max)).status).toBe(200);
});

describe('a parameter that does not exist', () => {
  const app = useApp();
  const key = useHttpKey(() => app);

  test.each([
    ['?hit=3', 'hit', 'hits'],
    ['?canwait=true', 'canwait', 'canWait'],
    ['?maxRequests[]=5', 'maxRequests[]', 'maxRequests'],
    ['?max_wait_millis=5', 'max_wait_millis', 'maxWaitMillis'],
    ['?hits=2&canWaits=true', 'canWaits', 'canWait'],
  ])('of a check is a 400 that names the nearest one: %s', async (query, given, nearest) => {
    expect(bodyOf(await key.check(query))).toEqual([
      400,
      { error: `unknown parameter ${given}; did you mean ${nearest}?`, key: key.name },
    ]);
    expect(await key.state()).toEqual({ Key: key.name, Found: false });
  });

  test('is quoted in part only', async () => {
    expect((await key.check(`?${'x'.repeat(5000)}=1`)).text.length).toBeLessThan(200);
  });

  test.each([
    ['POST', '/rate?key=a', 'key'],
    ['DELETE', '/rate?hits=2', 'hits'],
    ['DELETE', `/rate/a/${UNKNOWN_ID}?hits=2`, 'hits'],
  ])('of %s %s is a 400', async (method, path, parameter) => {
    expect(bodyOf(await send(app.url, method, path))).toMatchObject([
      400,
      { error: `${parameter} must be left out of the URL` },
    ]);
  });
});
