import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';

import type * as Taken from '../../../clients/node/src/api.js';
import { SluiceClient, SluiceDeniedError, SluiceError } from '../../../clients/node/src/index.js';
import type * as Bulk from '../../../src/api/bulk-schemas.js';
import type { ErrorCode } from '../../../src/service/errors.js';
import { useAppsByRules } from '../../support/app-by-rules.js';
import { useRecordingServers } from '../../support/client/recording-server.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { begin } from '../../support/http-client.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { tokenFile, writeTokens } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp, useApps } from '../../support/use-apps.js';

type Fits<One, Other> = [One] extends [Other] ? true : false;
type All<Facts extends readonly true[]> = Facts;
/** The client declares by itself what it takes from the API. */
export type Alike = All<
  [
    Fits<Taken.CheckElement, Bulk.CheckElement>,
    Fits<Bulk.CheckElement, Taken.CheckElement>,
    Fits<Taken.ReleaseElement, Bulk.ReleaseElement>,
    Fits<Bulk.ReleaseElement, Taken.ReleaseElement>,
    Fits<Bulk.CheckResult, Taken.CheckResult>,
    Fits<Bulk.ReleaseResult, Taken.ReleaseResult>,
    Fits<Taken.KnownErrorCode, ErrorCode>,
  ]
>;

const ONE = { maxRequests: 1 };
const NONE_LEFT = [
  { name: 'default', limit: 1, remaining: 0, resetSeconds: 3600, windowSeconds: 3600 },
];

const OWN = `${hostname()}:${process.pid}`;
const HOLD = { maxRequests: 9, holdMillis: 60_000 };

const folder = useTemporaryFolder();
const serve = useRecordingServers();
const start = useApps();
const app = useApp(() => ({ WINDOW_MILLIS: '3600000', LOG_4XX: 'true' }));
let client: SluiceClient;
beforeAll(() => {
  client = new SluiceClient(app.url);
});

const serveByRules = useAppsByRules();
/** A service whose clock stands still, and a client of it. */
async function still(...rules: readonly object[]) {
  const { url } = await serveByRules(rules, { WINDOW_MILLIS: '3600000' });
  return { url, client: new SluiceClient(url) };
}

const approved = (key: string) => debugState(app.url, key).then((s) => s.NumApprovedThisWindow);

async function permit(key: string, options = {}, asking = client): Promise<string> {
  const decision = await asking.check(key, options);
  if (!decision.approved) throw new Error('denied');
  return decision.requestId;
}

describe('a peek', () => {
  test('says what a check would get, with what is left, and counts nothing', async () => {
    const { url, client } = await still();
    const key = uniqueKey();
    expect(await client.peek(key)).toMatchObject({ allowed: true, waitMillis: 0 });
    expect(await debugState(url, key)).toEqual({ Key: key, Found: false });
    await client.check(key, { maxRequests: 3, hits: 2 });

    const quota = [{ ...NONE_LEFT[0], limit: 3, remaining: 1 }];
    expect(await client.peek(key)).toEqual({ allowed: true, waitMillis: 0, quota });
    const denied = await client.peek(key, { hits: 2 });
    expect(denied).toEqual({ allowed: false, waitMillis: expect.any(Number) as number, quota });
    expect(denied.waitMillis).toBeGreaterThan(3_500_000);
    expect((await debugState(url, key)).NumApprovedThisWindow).toBe(2);
  });

  test('that Sluice rejects, and an unknown option, throw errors', async () => {
    const tooMany = client.peek(uniqueKey(), { hits: 1e9 });
    await expect(tooMany).rejects.toMatchObject({ constructor: SluiceError, status: 400 });
    const wrong = client.peek('key', { maxRequests: 1 } as object);
    await expect(wrong).rejects.toThrow('unknown option maxRequests');
  });
});

describe('the status of a request', () => {
  test('says that it is approved, until when it is held, or that there is none', async () => {
    const key = uniqueKey();
    const [plain, held] = [await permit(key), await permit(key, { holdMillis: 60_000 })];
    expect(await client.requestStatus(key, plain)).toEqual({ status: 'approved' });
    expect(await client.requestStatus(key, held)).toEqual({
      status: 'approved',
      holdMillis: expect.any(Number) as number,
    });
    await client.release(key, plain);
    expect(await client.requestStatus(key, plain)).toBeUndefined();
  });

  test('says where it waits', async () => {
    const key = uniqueKey();
    await client.check(key, ONE);
    const id = randomUUID();
    const waiting = begin(app.url, 'POST', `/rate/${key}?canWait=true&requestId=${id}`);
    await untilWaiting(app.url, key, 1);
    const status = await client.requestStatus(key, id);
    expect(status).toEqual({
      status: 'waiting',
      position: 1,
      waitMillis: expect.any(Number) as number,
    });
    await client.release(key, id);
    expect((await waiting.answer).status).toBe(409);
  });

  test('that Sluice rejects, and an unknown option, throw errors', async () => {
    const noId = client.requestStatus('key', 'no-uuid');
    await expect(noId).rejects.toMatchObject({ constructor: SluiceError, status: 405 });
    const wrong = client.requestStatus('key', 'id', { hits: 1 } as object);
    await expect(wrong).rejects.toThrow('unknown option hits');
  });
});

describe('a check', () => {
  test('is approved while there is room, and then denied until the window ends', async () => {
    const { client } = await still();
    const key = uniqueKey();

    const [first, second] = await Promise.all([client.check(key, ONE), client.check(key)]);

    expect(first).toEqual({ approved: true, requestId: expect.any(String) as string });
    expect(second).toEqual({ approved: false, retryAfterSeconds: 3600 });
  });

  test('that Sluice rejects throws an error with its status and reason, and harms no other', async () => {
    const key = uniqueKey();

    const [tooLong, wrong, good] = await Promise.allSettled([
      client.check('x'.repeat(600)),
      client.check(key, { maxRequests: 0 }),
      client.check(key),
    ]);

    const bytes = 'key must be 1 to 512 bytes of UTF-8, not 600';
    expect(tooLong).toMatchObject({ reason: { status: 400, message: bytes } });
    expect(tooLong).toHaveProperty('reason.constructor', SluiceError);
    expect(wrong).toMatchObject({
      reason: { message: 'maxRequests must be a whole number from 1 to 1000000000' },
    });
    expect(good).toMatchObject({ value: { approved: true } });
  });
});

describe('hits', () => {
  test('are taken by checks and waits, and corrected', async () => {
    const key = uniqueKey();
    const id = await permit(key, { maxRequests: 10, hits: 4 });
    const waiting = client.wait(key, { hits: 10 });
    await untilWaiting(app.url, key, 1);
    expect(await client.correct(key, id, 9)).toBe(true);
    expect(await approved(key)).toBe(9);
    expect(await client.release(key, id)).toBe(true);
    expect(await waiting).toMatchObject({ approved: true });
    expect(await approved(key)).toBe(10);
    expect(await client.correct(key, id, 1)).toBe(false);
  });
});

test('a denial names the limit that has too little left: of a check, a wait, a peek and a permit', async () => {
  const hour = { name: 'hour', max_requests_per_window: 1, window_millis: 3_600_000 };
  const own = { max_requests_per_window: 1, window_millis: 1000 };
  const rule = { key_pattern: 'key', ...own, max_requests_in_queue: 0 };
  const { client: asking } = await still({ ...rule, limits: [hour] });
  expect(await asking.check('key')).toMatchObject({ approved: true });

  const denial = { approved: false, retryAfterSeconds: 3600, limit: 'hour' };
  expect(await Promise.all([asking.check('key'), asking.check('key')])).toEqual([denial, denial]);
  const left = { name: 'hour', limit: 1, remaining: 0, resetSeconds: 3600, windowSeconds: 3600 };
  const quota = expect.arrayContaining([left]) as unknown;
  expect(await asking.wait('key')).toEqual({ ...denial, quota });
  expect(await asking.peek('key')).toMatchObject({ allowed: false, limit: 'hour' });
  const denied = asking.permit('key');
  await expect(denied).rejects.toBeInstanceOf(SluiceDeniedError);
  await expect(denied).rejects.toMatchObject({ retryAfterSeconds: 3600, limit: 'hour' });
});

describe('a renewal', () => {
  const HOLD_MILLIS = 60_000;
  const holdOf = async (key: string, id: string) => {
    const status = await client.requestStatus(key, id);
    return status?.status === 'approved' ? status.holdMillis : undefined;
  };

  test('can change the length of the hold', async () => {
    const key = uniqueKey();
    const id = await client.permit(key, { holdMillis: HOLD_MILLIS });

    expect(await client.renew(key, id, { holdMillis: 2 * HOLD_MILLIS })).toBe(true);
    expect(await holdOf(key, id)).toBeGreaterThan(HOLD_MILLIS);
    expect(await client.renew(key, id)).toBe(true);
    expect(await holdOf(key, id)).toBeGreaterThan(HOLD_MILLIS);
  });
});

describe('a wait', () => {
  test('is denied if its turn comes too late, with the time to come back', async () => {
    const { client } = await still();
    const key = uniqueKey();
    await permit(key, ONE, client);

    const denied = { approved: false, retryAfterSeconds: 3600, quota: NONE_LEFT };
    expect(await client.wait(key, { maxWaitMillis: 1000 })).toEqual(denied);
    await expect(client.permit(key, { maxWaitMillis: 1000 })).rejects.toMatchObject({
      name: 'SluiceDeniedError',
      retryAfterSeconds: 3600,
    });
  });

  test('that is aborted gives its place up, with the fetch that is given', async () => {
    const key = uniqueKey();
    await permit(key, ONE);
    const leaving = new AbortController();
    const asking = new SluiceClient({ url: app.url, fetch });
    const waiting = asking.wait(key, { signal: leaving.signal });
    await untilWaiting(app.url, key, 1);

    leaving.abort();

    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
    await untilWaiting(app.url, key, 0);
  });

  test('delays no check', async () => {
    const key = uniqueKey();
    const requestId = await permit(key, ONE);
    const waits = Array.from({ length: 20 }, () => client.wait(key));
    await untilWaiting(app.url, key, 20);

    expect(await client.check(uniqueKey())).toMatchObject({ approved: true });

    await client.release(key, requestId);
    for (const wait of waits) {
      const decision = await wait;
      if (decision.approved) await client.release(key, decision.requestId);
    }
  });
});

test.each(['a/b', '..', '%2F', 'a b?c=d#e', '\u{1f6b0}', '"\\'])(
  'the key %p is the same to checks, waits and releases',
  async (name) => {
    const { url, client } = await still();
    const key = `${name}${name === '..' ? '' : uniqueKey()}`;
    const first = await permit(key, ONE, client);
    const waiting = client.wait(key);
    await untilWaiting(url, key, 1);

    expect(await client.release(key, first)).toBe(true);

    expect(await waiting).toEqual({
      approved: true,
      requestId: expect.any(String) as string,
      quota: NONE_LEFT,
    });
  },
);

describe('with a permit', () => {
  test('work that fails also releases the approval', async () => {
    const key = uniqueKey();
    const fails = () => {
      throw new Error('broken');
    };

    await expect(client.withPermit(key, fails)).rejects.toThrow('broken');

    expect(await approved(key)).toBe(0);
  });

  test('no work is done if the check is denied', async () => {
    const { client } = await still();
    const key = uniqueKey();
    await permit(key, ONE, client);
    let isDone = false;
    const work = () => {
      isDone = true;
    };

    const denied = client.withPermit(key, work, { wait: false });

    await expect(denied).rejects.toBeInstanceOf(SluiceDeniedError);
    await expect(denied).rejects.toMatchObject({ key, status: 429, retryAfterSeconds: 3600 });
    expect(isDone).toBe(false);
  });

  test('a release that fails is not an error', async () => {
    const own = await start();
    const work = () => own.stop(0).then(() => 'done');

    expect(await new SluiceClient(own.url).withPermit(uniqueKey(), work)).toBe('done');
  });
});

test('each call asks for the correlation id when it is sent', async () => {
  const ids = [uniqueKey(), uniqueKey()];
  const [one, other] = ids;
  const key = uniqueKey();
  const tracing = new SluiceClient({ url: app.url, correlationId: () => ids.shift() });

  await tracing.check(key, { maxRequests: 1, maxRequestsInQueue: 0 });
  await tracing.check(key);
  await tracing.wait(key);

  await until(() => app.log.some(({ correlationId }) => correlationId === other));
  expect(app.log.some(({ correlationId }) => correlationId === one)).toBe(false);
});

describe('with a token', () => {
  const caller = (token: string) => ({ name: 'a', token, scopes: ['check', 'release'] });
  const [first, second] = ['the-first-token-of-a', 'the-second-token-of-a'] as const;
  const guarded = async () => {
    const file = await tokenFile(folder, caller(first));
    return { file, service: await start({ AUTH_TOKENS_FILE: file }) };
  };

  test('checks, waits and releases are accepted, and without one they are rejected', async () => {
    const { service } = await guarded();
    const holder = new SluiceClient({ url: service.url, token: first });
    const key = uniqueKey();

    const decision = await holder.wait(key);

    expect(await holder.check(key)).toMatchObject({ approved: true });
    expect(decision.approved && (await holder.release(key, decision.requestId))).toBe(true);
    const stranger = new SluiceClient(service.url);
    const refused = { status: 401, message: 'a bearer token is required' };
    await expect(stranger.check(key)).rejects.toMatchObject(refused);
    await expect(stranger.wait(key)).rejects.toMatchObject(refused);
    await expect(stranger.release(key, 'x')).rejects.toMatchObject(refused);
  });

  test('that changes the new one is sent from the next call on', async () => {
    const { file, service } = await guarded();
    let token: string = first;
    const holder = new SluiceClient({ url: service.url, token: () => Promise.resolve(token) });
    await holder.check(uniqueKey());
    await writeTokens(file, [caller(second)]);
    await service.logged(({ msg }) => msg === 'tokens reloaded');

    await expect(holder.check(uniqueKey())).rejects.toMatchObject({ message: 'unknown token' });
    token = second;

    expect(await holder.check(uniqueKey())).toMatchObject({ approved: true });
  });

  test('that can not be obtained nothing is sent', async () => {
    const cause = new Error('the vault is closed');
    const token = () => Promise.reject(cause);
    const holder = new SluiceClient({ url: app.url, token });
    const key = uniqueKey();

    await expect(holder.check(key)).rejects.toMatchObject({ message: 'no token available', cause });
    await expect(holder.wait(key)).rejects.toMatchObject({ message: 'no token available', cause });

    expect(await debugState(app.url, key)).toMatchObject({ Found: false });
  });
});

async function holdersOf(key: string): Promise<(string | undefined)[]> {
  const { Holders = [] } = await debugState(app.url, key);
  return Holders.map(({ Holder }) => Holder);
}

test('checks, waits and permits that are held name the host and the process', async () => {
  const key = uniqueKey();
  await client.check(key, HOLD);
  await client.check(key, { ...HOLD, quota: true });
  await client.wait(key, HOLD);
  await client.withPermit(key, async () => {
    expect(await holdersOf(key)).toEqual([OWN, OWN, OWN, OWN]);
  });
  await client.check(key);
});

test.each([
  ['host of my choice', 'host of my choice'],
  [false, undefined],
] as const)('a client with the holder %j says so', async (holder, shown) => {
  const key = uniqueKey();
  await new SluiceClient({ url: app.url, holder }).permit(key, HOLD);
  expect(await holdersOf(key)).toEqual([shown]);
});

test('a holder that is empty or too long is an error at once', () => {
  const url = app.url;
  expect(() => new SluiceClient({ url, holder: '' })).toThrow(RangeError);
  expect(() => new SluiceClient({ url, holder: 'ä'.repeat(33) })).toThrow(
    'holder must be 1 to 64 bytes of UTF-8, not 66',
  );
});

test('a check that is rejected with its holder is not sent again', async () => {
  const server = await serve((call) => {
    call.fail(400, 'holdMillis must be a whole number from 1000 to 86400000');
  });
  const asked = new SluiceClient(server.url).permit('a', { holdMillis: 1 });
  await expect(asked).rejects.toMatchObject({ status: 400 });
  expect(server.calls).toHaveLength(1);
});
