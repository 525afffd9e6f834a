import { randomUUID } from 'node:crypto';

import type { Asked } from '../../../src/limiter/limiter.js';
import { callText, checkMany, releaseMany } from '../../support/bulk-client.js';
import { httpAppOver, serve } from '../../support/http-app.js';
import { approve, bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { smallLimiter, useHttpServices } from '../../support/http-service.js';
import { ManualClock } from '../../support/manual-clock.js';
import { scrape } from '../../support/prometheus-text.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { type OwnApp, useApp, useApps } from '../../support/use-apps.js';
import { withholdDecisions } from '../../support/watched-limiter.js';

// What checks with an id get is in test/support/behaviour/request-ids.ts.
const start = useApps();
const startService = useHttpServices();

const app = useApp(() => ({ MAX_REQUESTS: '10', WINDOW_MILLIS: '3600000' }));
const key = useHttpKey(() => app);

let id: string;
beforeEach(() => {
  id = randomUUID();
});

const approved = (requestId = id): [number, unknown] => [200, { request_id: requestId }];

describe('a request id in a query', () => {
  test.each([
    '0197c3a2-8b1e-7f00-8d5a-5b6c7d8e9f01',
    '7a0f5f0c-7ed7-4f6b-9a0d-111111111111',
    '00000000-0000-0000-0000-000000000000',
    '12345678-0000-0000-0000-9abcdef01234',
  ])('may be any UUID: %s', async (each) => {
    for (let attempt = 0; attempt < 2; attempt += 1) {
      expect(bodyOf(await key.check(`?requestId=${each}`))).toEqual(approved(each));
    }
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 1 });
    expect(bodyOf(await key.release(each))).toEqual(approved(each));
  });

  test.each(['', '7', 'x'.repeat(36), `{${randomUUID()}}`, randomUUID().replaceAll('-', '')])(
    'is a 400 if it is no UUID: %j',
    async (each) => {
      const error = 'requestId must be a UUID';
      expect(bodyOf(await key.check(`?requestId=${encodeURIComponent(each)}`))).toEqual([
        400,
        { error, key: key.name },
      ]);
      expect(await key.state()).toEqual({ Key: key.name, Found: false });
    },
  );

  test('may be written in upper case, which is answered in lower case', async () => {
    const upper = id.toUpperCase();
    expect(bodyOf(await key.check(`?requestId=${upper}&holdMillis=60000`))).toEqual(approved());
    expect(bodyOf(await key.check(`?requestId=${id}&holdMillis=60000`))).toEqual(approved());
    expect(bodyOf(await key.amend(upper))).toEqual([200, { request_id: id, holdMillis: 60_000 }]);
    expect(bodyOf(await key.release(upper))).toEqual(approved());
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 0 });
  });

  test('is the one of the answer in shadow mode, and while no store decides', async () => {
    const rule = { key_pattern: key.name, max_requests_per_window: 1, shadow: true };
    const shadow = await start({ WINDOW_MILLIS: '3600000' }, { rules: [rule] });
    await send(shadow.url, 'POST', ratePath(key.name));
    const denied = await send(shadow.url, 'POST', `${ratePath(key.name)}?requestId=${id}`);
    expect(bodyOf(denied)).toEqual(approved());
    expect(denied.headers['x-sluice-shadow']).toBe('denied');
    const element = { key: key.name, requestId: id };
    expect(await checkMany(shadow.url, [element])).toMatchObject([{ request_id: id }]);

    const allowing = await start({
      REDIS_URL: 'redis://127.0.0.1:1',
      STORE_TIMEOUT_MILLIS: '200',
      STORE_OUTAGE_POLICY: 'allow',
    });
    const allowed = await send(allowing.url, 'POST', `${ratePath(key.name)}?requestId=${id}`);
    expect(bodyOf(allowed)).toEqual(approved());
  });
});

describe('a request id in a bulk request', () => {
  test('belongs to its element, and is one approval if it comes twice', async () => {
    const other = uniqueKey();
    const results = await checkMany(app.url, [
      { key: key.name, requestId: id },
      { key: key.name, requestId: id.toUpperCase() },
      { key: other, requestId: id },
      { key: key.name, requestId: id, hits: 2 },
      { key: key.name, requestId: 'x' },
      { key: key.name, requestId: 7 },
      { key: key.name },
    ]);
    expect(results).toMatchObject([
      { status: 200, request_id: id },
      { status: 200, request_id: id },
      { status: 200, request_id: id },
      { status: 409, error: 'hits must be the same in all checks with this requestId' },
      { status: 400, error: 'requestId must be a UUID' },
      { status: 400, error: 'requestId must be a UUID' },
      { status: 200 },
    ]);
    expect(await key.state()).toMatchObject({ NumApprovedThisWindow: 2 });

    const released = await releaseMany(app.url, [
      { key: key.name, request_id: id.toUpperCase() },
      { key: key.name, request_id: id },
      { key: other, request_id: id },
    ]);
    expect(released).toMatchObject([{ status: 200 }, { status: 404 }, { status: 200 }]);
    expect(await checkMany(app.url, [{ key: key.name, requestId: id }])).toMatchObject([
      { status: 409, error: 'the approval with this requestId was released, or has lapsed' },
    ]);
  });
});

describe('a client that disconnects before the answer', () => {
  const requests = [
    ['a check', () => requestText('POST', `${ratePath(key.name)}?requestId=${id}`)],
    ['a bulk request', () => callText('POST', [{ key: key.name, requestId: id }])],
  ] as const;
  let close: (() => Promise<void>) | undefined;
  afterEach(() => close?.());

  /** Has a client disconnect before it is answered. Returns what still counts, and what was given back. */
  async function disconnect(text: string, meanwhile: (url: string) => Promise<unknown>) {
    const limiter = smallLimiter();
    const { tell, decided } = withholdDecisions(limiter, 1);
    const givenBack: string[] = [];
    const ask = limiter.ask.bind(limiter);
    limiter.ask = async (...args) => {
      const answer = await ask(...args);
      if (args[0] === 'giveBack') givenBack.push((args[1] as Asked<'giveBack'>).claim);
      return answer;
    };
    const served = await serve(httpAppOver(limiter));
    close = async () => {
      await served.close();
      await limiter.close();
    };
    const isCut = served.answerCloses();
    const connection = await openConnection(served.url);
    connection.write(text);
    await until(() => decided() === 1);
    await meanwhile(served.url);
    connection.disconnect();
    await isCut;
    tell();
    await until(() => givenBack.length === 1);
    expect(givenBack[0]).toMatch(new RegExp(`^${id}#\\d+$`));
    return (await limiter.ask('inspect', { key: key.name }))?.limits[0].used;
  }

  test.each(requests)('of %s gives its approval back', async (_form, text) => {
    expect(await disconnect(text(), () => Promise.resolve())).toBe(0);
  });

  test.each(requests)('of %s leaves the approval to a later check', async (_form, text) => {
    const askAgain = async (url: string): Promise<void> => {
      const again = await send(url, 'POST', `${ratePath(key.name)}?requestId=${id}`);
      expect(bodyOf(again)).toEqual(approved());
    };
    expect(await disconnect(text(), askAgain)).toBe(1);
  });
});

/** So long that no turn comes while a test runs. */
const LIMITS = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' };

describe('keepMillis', () => {
  const app = useApp(() => LIMITS);
  const key = useHttpKey(() => app);
  const id = randomUUID();

  test.each([
    [`canWait=true&requestId=${id}&keepMillis=600001`, 'be a whole number from 0 to 600000'],
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

  test('of 0 keeps no place, so that a preference bounds the wait', async () => {
    await key.approve();
    const query = `?canWait=true&requestId=${randomUUID()}&keepMillis=0`;
    const answer = await key.check(query, { prefer: 'wait=5' });
    expect([answer.status, answer.headers['preference-applied']]).toEqual([429, 'wait=5']);
    expect(await key.state()).toMatchObject({ NumWaiting: 0 });
  });
});

describe('a kept place', () => {
  let app: OwnApp;
  const key = useHttpKey(() => app);
  let id: string;
  const startWith = async (
    environment: Readonly<Record<string, string>> = {},
    tokens?: Parameters<typeof start>[1],
  ): Promise<void> => {
    app = await start({ ...LIMITS, ...environment }, tokens);
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
    const clock = new ManualClock(0);
    const { url } = await startService({ limiter: smallLimiter(clock) });
    const path = ratePath(key.name);
    const given = await approve(url, key.name);
    expect((await send(url, 'POST', path + query(1), { prefer: 'wait=0' })).status).toBe(202);
    await clock.advance(999);
    await send(url, 'DELETE', `${path}/${given}`);
    await clock.advance(999);
    expect(bodyOf(await send(url, 'POST', path + query(1)))).toEqual([200, { request_id: id }]);
  });

  test('counts as unclaimed if its caller does not come back', async () => {
    await startWith();
    const given = await key.approve();
    expect((await key.check(query(4000), { prefer: 'wait=0' })).status).toBe(202);
    await key.release(given);
    await until(async () => {
      await key.check('?hits=1');
      return (await scrape(app.url)).value('ratelimit_unclaimed_approvals_total') === 1;
    });
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

  test('outlives windows only if the key may be held', async () => {
    const second = { name: 'second', max_requests_per_window: 1, window_millis: 1000 };
    const cases = [
      [{ requests_can_hold: false }, 60_000],
      [{ window_millis: 1000, requests_can_hold: false }, 2000],
      [{ limits: [second], requests_can_hold: false }, 2000],
      [{ window_millis: 1000, max_hold_millis: 5000 }, 5000],
      [{ window_millis: 1000 }, 60_000],
    ] as const;
    const rules = cases.map(([rule], i) => ({ key_pattern: `key-${i}`, ...rule }));
    await startWith({}, { rules });
    const askAll = (moreMillis: number) =>
      Promise.all(
        cases.map(async ([, longest], i) => {
          const path = `/rate/key-${i}${query(longest + moreMillis)}`;
          const answer = await send(app.url, 'POST', path);
          return [answer.status, (answer.json() as { error?: string }).error];
        }),
      );

    expect(await askAll(1)).toEqual(
      cases.map(([, longest]) => [403, `keepMillis must be at most ${longest} for this key`]),
    );
    expect(await askAll(0)).toEqual(cases.map(() => [200, undefined]));
  });
});
