import { bothLimiters } from '../../support/both-limiters.js';
import { checkMany } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { approve, approvedId, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const UNKNOWN_ID = '3f3c9e5d-8a07-4a4e-9d62-111111111111';
const OUT_OF_BOUNDS = 'holdMillis must be a whole number from 1000 to 86400000';
const HOURS = { WINDOW_MILLIS: '3600000' };
const FORBIDDEN = 'holding approvals is disabled for this key';

const tooLong = (max: number): string => `holdMillis must be at most ${max} for this key`;

const redis = useRedis();
const start = useApps();

describe.each(bothLimiters(redis))('holds (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({
    ...settings(),
    ...HOURS,
    MAX_REQUESTS: '10',
    MAX_HOLDS_PER_KEY: '2',
  }));
  const key = useHttpKey(() => app);

  test('belong to each element of a bulk request', async () => {
    const results = await checkMany(app.url, [
      { key: key.name, holdMillis: 60_000, hits: 2 },
      { key: key.name },
      { key: key.name, holdMillis: 999 },
      { key: key.name, holdMillis: '60000' },
    ]);
    expect(results).toMatchObject([
      { status: 200 },
      { status: 200 },
      { status: 400, error: OUT_OF_BOUNDS },
      { status: 400, error: OUT_OF_BOUNDS },
    ]);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 3, NumHeld: 2 });
  });

  test.each([
    ['?holdMillis=999', OUT_OF_BOUNDS],
    ['?holdMillis=86400001', OUT_OF_BOUNDS],
    ['?holdMillis=1500.5', OUT_OF_BOUNDS],
    ['?holdMillis=', OUT_OF_BOUNDS],
    ['?holdMillis=2000&holdMillis=2000', 'holdMillis must be given once'],
    ['?holdMilli=2000', 'unknown parameter holdMilli; did you mean holdMillis?'],
  ])('are not taken or renewed by %j', async (query, error) => {
    expect(bodyOf(await key.check(query))).toEqual([400, { error, key: key.name }]);
    expect(await key.state()).toEqual({ Key: key.name, Found: false });
    const id = await key.approve('?holdMillis=60000');
    expect(bodyOf(await key.amend(id, query))).toEqual([400, { error, key: key.name }]);
  });

  test('above the greatest number of a key are a 503', async () => {
    for (let held = 0; held < 2; held += 1) await key.approve('?holdMillis=60000');
    const { status, headers, json } = await key.check('?holdMillis=60000');
    expect([status, headers['retry-after'], json()]).toEqual([
      503,
      '1',
      { error: 'too many approvals of the key', key: key.name },
    ]);
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

  test('by a setting', async () => {
    const key = uniqueKey();
    const app = await start({ ...HOURS, REQUESTS_CAN_HOLD: 'false' });
    expect(await errorsOf(app, key, 1000)).toEqual(each(403, FORBIDDEN));
    expect(await debugState(app.url, key)).toEqual({ Key: key, Found: false });
  });

  test('by the setting of the longest one', async () => {
    const key = uniqueKey();
    const app = await start({ ...HOURS, MAX_HOLD_MILLIS: '5000' });
    expect(await errorsOf(app, key, 5001)).toEqual(each(403, tooLong(5000)));
    expect(await debugState(app.url, key)).toEqual({ Key: key, Found: false });
    expect(await errorsOf(app, key, 5000)).toEqual(none);
  });

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

describe.each(bothLimiters(redis))('rules that change (%s limiter)', (_name, settings) => {
  test.each([
    ['forbid holds', { requests_can_hold: false }, FORBIDDEN],
    ['shorten them', { max_hold_millis: 5000 }, tooLong(5000)],
  ])('and %s apply to renewals, and corrections do not renew', async (_what, change, error) => {
    const rule = { key_pattern: 'held' };
    const app = await start({ ...settings(), ...HOURS }, { rules: [rule] });
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

test('a hold and its renewal take the scope check', async () => {
  const asks = { name: 'asks', token: 'a'.repeat(40), scopes: ['check'] };
  const givesBack = { name: 'gives-back', token: 'b'.repeat(40), scopes: ['release'] };
  const app = await start({}, { tokens: [asks, givesBack] });
  const path = ratePath(uniqueKey());
  const held = await send(app.url, 'POST', `${path}?holdMillis=60000`, bearer(asks));
  const renew = async (caller: typeof asks): Promise<number> =>
    (await send(app.url, 'PUT', `${path}/${approvedId(held)}`, bearer(caller))).status;
  expect([await renew(givesBack), await renew(asks)]).toEqual([403, 200]);
});
