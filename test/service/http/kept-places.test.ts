import { randomUUID } from 'node:crypto';

import { bothLimiters } from '../../support/both-limiters.js';
import { sendBody } from '../../support/bulk-client.js';
import { bodyOf } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { scrape } from '../../support/prometheus-text.js';
import { bearer } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import { type OwnApp, useApp, useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useApps();

/** So long that no turn comes while a test runs. */
const LIMITS = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };

describe('keepMillis', () => {
  const app = useApp(() => LIMITS);
  const key = useHttpKey(() => app);
  const id = randomUUID();

  test.each([
    [`canWait=true&requestId=${id}&keepMillis=600001`, 'be a whole number from 0 to 600000'],
    [`canWait=true&requestId=${id}&keepMillis=-1`, 'be a whole number from 0 to 600000'],
    [`requestId=${id}&keepMillis=5000`, 'be used with canWait=true'],
    [`canWait=false&requestId=${id}&keepMillis=0`, 'be used with canWait=true'],
    ['canWait=true&keepMillis=5000', 'be used with requestId'],
    ['peek=true&keepMillis=5000', 'be left out with peek=true'],
  ])('is a 400 with "%s"', async (query, must) => {
    const error = `keepMillis must ${must}`;
    expect(bodyOf(await key.check(`?${query}`))).toEqual([400, { error, key: key.name }]);
    expect(await key.state()).toEqual({ Key: key.name, Found: false });
  });

  test('is a 403 above MAX_KEEP_MILLIS', async () => {
    const error = 'keepMillis must be at most 60000 for this key';
    const answer = await key.check(`?canWait=true&requestId=${id}&keepMillis=60001`);
    expect(bodyOf(answer)).toEqual([403, { error, key: key.name }]);
  });

  test('can not be asked for by an element of a bulk request', async () => {
    const elements = [{ key: key.name, requestId: id, keepMillis: 5000 }];
    const answer = await sendBody(app.url, 'POST', JSON.stringify(elements));
    const error = 'keepMillis must be left out: a check that may wait is sent alone';
    expect(answer.json()).toEqual([{ status: 400, error }]);
  });

  test('of 0 keeps no place, so that a preference bounds the wait', async () => {
    await key.approve();
    const query = `?canWait=true&requestId=${randomUUID()}&keepMillis=0`;
    const answer = await key.check(query, { prefer: 'wait=5' });
    expect([answer.status, answer.headers['preference-applied']]).toEqual([429, 'wait=5']);
    expect(await key.state()).toMatchObject({ NumWaiting: 0 });
  });
});

describe.each(bothLimiters(redis))('a kept place (%s limiter)', (name, settings) => {
  let app: OwnApp;
  const key = useHttpKey(() => app);
  let id: string;
  const startWith = async (
    environment: Readonly<Record<string, string>> = {},
    tokens?: Parameters<typeof start>[1],
  ): Promise<void> => {
    app = await start({ ...settings(), ...LIMITS, ...environment }, tokens);
  };
  const query = (keepMillis = 60_000): string =>
    `?canWait=true&requestId=${id}&keepMillis=${keepMillis}`;
  beforeEach(() => {
    id = randomUUID();
  });
  const metric = async (outcome: string, reason: string): Promise<number> => {
    const labels = { outcome, reason, decided_by: 'store' };
    return (await scrape(app.url)).value('ratelimit_decisions_total', labels);
  };

  test('is told by a 202 when the preferred time is over', async () => {
    await startWith();
    await key.approve();
    const answer = await key.check(query(), { prefer: 'wait=0' });
    const { status, headers } = answer;
    expect([status, headers['preference-applied']]).toEqual([202, 'wait=0']);
    expect(headers['cache-control']).toBe('no-store');
    const body = answer.json() as { waitMillis: number };
    expect(body).toEqual({ request_id: id, position: 1, waitMillis: expect.any(Number) as number });
    expect(body.waitMillis).toBeGreaterThan(3_500_000);
    expect(body.waitMillis).toBeLessThanOrEqual(3_600_000);
    const later = await key.check(query(), { prefer: 'wait=1' });
    expect([later.status, later.json()]).toEqual([202, expect.objectContaining({ position: 1 })]);
    expect(await key.state()).toMatchObject({ NumWaiting: 1 });
    expect(await metric('waiting', 'answer_due')).toBe(2);
  });

  test('outlives its connection, and gives its approval to a later check', async () => {
    await startWith();
    const given = await key.approve();
    const waiting = await key.wait(query());
    waiting.disconnect();
    await app.logged(
      ({ msg, status }) =>
        msg === 'client disconnected while waiting, and its place is kept' && status === 499,
    );
    expect(await key.state()).toMatchObject({ NumWaiting: 1 });
    expect(await metric('waiting', 'client_disconnected')).toBe(1);
    expect((await key.release(given)).status).toBe(200);
    expect(await key.state()).toMatchObject({ NumWaiting: 0, NumHeld: 1 });
    expect(bodyOf(await key.check(query()))).toEqual([200, { request_id: id }]);
    const state = await key.state();
    expect(state).toMatchObject({ NumApprovedThisWindow: 1, NumWaiting: 0 });
    expect(state).not.toHaveProperty('NumHeld');
  });

  test('is kept for a second at least', async () => {
    await startWith();
    const given = await key.approve();
    expect((await key.check(query(1), { prefer: 'wait=0' })).status).toBe(202);
    await key.release(given);
    expect(bodyOf(await key.check(query(1)))).toEqual([200, { request_id: id }]);
  });

  test('counts as unclaimed if its caller does not come back', async () => {
    await startWith();
    const given = await key.approve();
    expect((await key.check(query(1000), { prefer: 'wait=0' })).status).toBe(202);
    await key.release(given);
    await until(async () => {
      await key.check('?hits=1');
      return (await scrape(app.url)).value('ratelimit_unclaimed_approvals_total') === 1;
    });
  });

  test('is withdrawn by a DELETE, as is the approval that is kept for it', async () => {
    await startWith();
    const given = await key.approve();
    await key.check(query(), { prefer: 'wait=0' });
    expect(bodyOf(await key.release(id))).toEqual([200, { request_id: id }]);
    expect((await key.release(id)).status).toBe(404);
    await key.check(query(), { prefer: 'wait=0' });
    await key.release(given);
    expect((await key.amend(id)).status).toBe(404);
    expect((await key.release(id)).status).toBe(200);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 0, NumWaiting: 0 });
  });

  test('stays in the counts of its caller until it ends', async () => {
    const caller = { name: 'caller', token: 'token-of-the-caller', scopes: ['check', 'release'] };
    await startWith({ MAX_WAITERS_PER_CALLER: '1' }, { tokens: [caller] });
    const headers = bearer(caller);
    const check = (requestId: string) =>
      key.check(`?canWait=true&keepMillis=60000&requestId=${requestId}`, {
        ...headers,
        prefer: 'wait=0',
      });
    await key.check('', headers);
    expect((await check(id)).status).toBe(202);
    const error = 'too many waiters of this caller on this replica';
    expect(bodyOf(await check(randomUUID()))).toEqual([503, { error, key: key.name }]);
    expect((await check(id)).status).toBe(202);
  });

  test('needs no right to hold, and none to a long hold', async () => {
    await startWith({ REQUESTS_CAN_HOLD: 'false', MAX_HOLD_MILLIS: '1000' });
    const given = await key.approve();
    await key.check(query(), { prefer: 'wait=0' });
    await key.release(given);
    expect(await key.state()).toMatchObject({ NumHeld: 1 });
  });

  if (name === 'redis') {
    test('is handed over when the replica stops, and another has it', async () => {
      const shared = settings();
      app = await start({ ...shared, ...LIMITS });
      const given = await key.approve();
      const waiting = await key.wait(query());
      const stopped = app.stop(60_000);
      const answer = await waiting.answer;
      const error = 'shutting down; another replica has the place';
      expect(bodyOf(answer)).toEqual([503, { error, key: key.name }]);
      expect(answer.headers).toMatchObject({ 'retry-after': '0', connection: 'close' });
      await stopped;

      app = await start({ ...shared, ...LIMITS });
      expect((await key.check('?canWait=true&maxRequests=1&maxWaitMillis=0')).status).toBe(429);
      const later = await key.check(query(), { prefer: 'wait=0' });
      expect(later.json()).toMatchObject({ request_id: id, position: 1 });
      expect((await key.release(given)).status).toBe(200);
      expect(bodyOf(await key.check(query()))).toEqual([200, { request_id: id }]);
    });
  }
});
