import { randomUUID } from 'node:crypto';

import { callText, checkMany, releaseMany } from '../../support/bulk-client.js';
import { httpAppOver, serve } from '../../support/http-app.js';
import { bodyOf, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { smallLimiter } from '../../support/http-service.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp, useApps } from '../../support/use-apps.js';
import { withholdDecisions } from '../../support/withheld-decisions.js';

// What checks with an id get is in test/support/behaviour/request-ids.ts.

const start = useApps();

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

  test('is a 400 if it is given twice', async () => {
    const error = 'requestId must be given once';
    expect(bodyOf(await key.check(`?requestId=${id}&requestId=${id}`))).toEqual([
      400,
      { error, key: key.name },
    ]);
  });

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

  test('ends the wait of an earlier check', async () => {
    await key.check('?hits=10');
    const waiting = await key.wait(`?canWait=true&requestId=${id}`);
    const [result] = await checkMany(app.url, [{ key: key.name, requestId: id }]);
    expect(result).toMatchObject({ status: 429, retryAfter: 3600 });
    expect(bodyOf(await waiting.answer)).toEqual([
      409,
      { error: 'a later check with this requestId has taken over', key: key.name },
    ]);
    expect(await key.state()).toMatchObject({ NumWaiting: 0 });
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
    const giveBack = limiter.giveBack.bind(limiter);
    limiter.giveBack = (...args) => {
      giveBack(...args);
      givenBack.push(args[1]);
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
    return (await limiter.inspect(key.name))?.limits[0].used;
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
