import type { Environment } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { begin, bodyOf, type PendingRequest, ratePath, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { scrape } from '../../support/prometheus-text.js';
import { bearer } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { type OwnApp, useApps } from '../../support/use-apps.js';

const start = useApps();

const scopes = ['check', 'configure'];
const OPERATOR = { name: 'operator', token: 'token-that-may-debug', scopes: ['debug'] };
const ONE = { name: 'one', token: ['token-of-one-caller', 'its-other-token-of-it'], scopes };
const OTHER = { name: 'other', token: 'token-of-another', scopes };
const SMALL = { name: 'small', token: 'token-of-a-small-one', scopes, waiting_share: 0.25 };
const TOO_MANY = 'too many waiters of this caller on this replica';

type Who = typeof ONE | typeof OTHER;

describe('places to wait in', () => {
  let app: OwnApp;
  let key: string;
  let requests: PendingRequest[];
  beforeEach(() => {
    key = uniqueKey();
    requests = [];
  });

  /** A replica with four places, and a key that has no room left. */
  async function startFull(more: Environment = {}): Promise<void> {
    const hour = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1', MAX_WAITERS: '4' };
    app = await start({ ...hour, ...more }, { tokens: [OPERATOR, ONE, OTHER, SMALL] });
    expect((await check(OTHER, '')).status).toBe(200);
  }

  function check(who: Who, query: string, of = key, headers = bearer(who)) {
    return send(app.url, 'POST', `${ratePath(of)}${query}`, headers);
  }

  async function wait(who: Who, headers = bearer(who)): Promise<void> {
    const waiting = (await debugState(app.url, key, bearer(OPERATOR))).NumWaiting!;
    requests.push(begin(app.url, 'POST', `${ratePath(key)}?canWait=true`, headers));
    await untilWaiting(app.url, key, waiting + 1, bearer(OPERATOR));
  }

  async function expectNoPlace(who: Who): Promise<void> {
    const { status, headers, json } = await check(who, '?canWait=true');

    expect([status, headers['retry-after']]).toEqual([503, '1']);
    expect(json()).toStrictEqual({ error: TOO_MANY, key });
  }

  test('a caller may take half of them, and the others stay free for other callers', async () => {
    await startFull();
    await wait(ONE);
    await wait(ONE);
    await expectNoPlace(ONE);

    await wait(OTHER);
    await wait(OTHER);
  });

  test('a waiter above the share of its caller is not a denial, and has a count of its own', async () => {
    await startFull({ MAX_WAITERS_PER_CALLER: '0' });
    const before = await debugState(app.url, key, bearer(OPERATOR));
    await expectNoPlace(ONE);

    expect(await debugState(app.url, key, bearer(OPERATOR))).toStrictEqual(before);
    const metrics = await scrape(app.url, bearer(OPERATOR));
    expect(
      metrics.value('ratelimit_failed_checks_total', { reason: 'too_many_waiters_of_caller' }),
    ).toBe(1);
    expect(metrics.value('ratelimit_failed_checks_total', { reason: 'too_many_waiters' })).toBe(0);
  });

  test('a caller without a place left is approved at once if there is room', async () => {
    await startFull();
    await wait(ONE);
    await wait(ONE);

    expect((await check(ONE, '?canWait=true', uniqueKey())).status).toBe(200);
    expect((await check(ONE, '?canWait=true&maxRequests=4')).status).toBe(200);
  });

  test('a caller without a place left is denied like all others if it would not wait', async () => {
    await startFull({ MAX_WAITERS_PER_CALLER: '0' });
    expect((await check(ONE, '')).status).toBe(429);
    expect((await check(ONE, '?canWait=true&maxRequestsInQueue=0')).status).toBe(429);
  });

  test('the tokens of a caller share its places, and its share may be smaller', async () => {
    await startFull();
    await wait(ONE, bearer({ token: ONE.token[0]! }));
    await wait(ONE, bearer({ token: ONE.token[1]! }));
    await expectNoPlace(ONE);
    await wait(SMALL);

    await expectNoPlace(SMALL);
  });

  test('a place is free again when its waiter is approved or has disconnected', async () => {
    await startFull({ MAX_WAITERS_PER_CALLER: '1' });
    await wait(ONE);
    expect((await check(OTHER, '?maxRequests=2')).status).toBe(429);
    expect((await requests[0]!.answer).status).toBe(200);
    await wait(ONE);
    await expectNoPlace(ONE);
    requests[1]!.disconnect();
    await app.logged(({ status }) => status === 499);
    await untilWaiting(app.url, key, 0, bearer(OPERATOR));

    await wait(ONE);
  });
});

test('many checks at once get as many places as the share of their caller', async () => {
  const settings = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1', MAX_WAITERS_PER_CALLER: '5' };
  const app = await start(settings, { tokens: [OPERATOR, ONE] });
  const key = uniqueKey();
  const path = `${ratePath(key)}?canWait=true`;
  expect((await send(app.url, 'POST', path, bearer(ONE))).status).toBe(200);
  const requests = Array.from({ length: 20 }, () => begin(app.url, 'POST', path, bearer(ONE)));
  const failed = async (): Promise<number> =>
    (await scrape(app.url, bearer(OPERATOR))).value('ratelimit_failed_checks_total', {
      reason: 'too_many_waiters_of_caller',
    });
  await until(async () => (await failed()) === 15);
  await untilWaiting(app.url, key, 5, bearer(OPERATOR));
  await app.stop(0);
  const errors = await Promise.all(
    requests.map(async ({ answer }) => ((await answer).json() as { error: string }).error),
  );

  expect(errors.filter((error) => error === 'shutting down')).toHaveLength(5);
  expect(errors.filter((error) => error === TOO_MANY)).toHaveLength(15);
});

describe('a replica with MAX_WAITERS', () => {
  const TOO_MANY = 'too many waiters on this replica';

  let app: OwnApp;
  const key = useHttpKey(() => app);
  const other = useHttpKey(() => app);

  async function startWith(MAX_WAITERS: string): Promise<void> {
    app = await start({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1', MAX_WAITERS });
    for (const each of [key, other]) await each.approve();
  }

  const failed = async (): Promise<number> =>
    (await scrape(app.url)).value('ratelimit_failed_checks_total', { reason: 'too_many_waiters' });

  test('fails a further waiter of any key, and holds another when one has disconnected', async () => {
    await startWith('2');
    const [first, second] = [await key.wait(), await other.wait()];
    const before = await key.state();
    expect(bodyOf(await key.check('?canWait=true'))).toEqual([
      503,
      { error: TOO_MANY, key: key.name },
    ]);
    expect([await failed(), await key.state()]).toEqual([1, before]);

    second.disconnect();
    await until(async () => (await scrape(app.url)).value('ratelimit_waiting') === 1);
    await key.wait();
    expect((await other.check('?canWait=true')).status).toBe(503);
    expect((await key.check('?maxRequests=2')).status).toBe(429);
    expect((await first.answer).status).toBe(200);
  });
});
