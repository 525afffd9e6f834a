import { type TestApp, startTestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { sendBody } from '../../support/bulk-client.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { type Answer, approve, begin, ratePath, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
/** So long that no turn comes while a test runs. */
const WINDOW_SECONDS = 3600;

describe.each(bothLimiters(redis))('waits with a limit (%s limiter)', (_name, settings) => {
  let app: TestApp;
  let key: string;
  beforeAll(async () => {
    app = await startTestApp({
      ...settings(),
      WINDOW_MILLIS: String(WINDOW_SECONDS * 1000),
      MAX_REQUESTS: '1',
    });
  });
  afterAll(() => app.stop(0));
  beforeEach(() => {
    key = uniqueKey();
  });

  const ask = (query: string, headers: Record<string, string> = {}): Promise<Answer> =>
    send(app.url, 'POST', `${ratePath(key)}?${query}`, headers);
  const decisions = async (reason: string): Promise<number> =>
    (await scrape(app.url)).value('ratelimit_decisions_total', {
      outcome: 'denied',
      reason,
      decided_by: 'store',
    });

  test('a check whose turn would come too late gets a 429 at once, with Retry-After', async () => {
    await approve(app.url, key);
    const counted = await decisions('turn_too_late');
    const answer = await ask('canWait=true&maxWaitMillis=1000');
    expect(answer.status).toBe(429);
    expect(answer.json()).toEqual({ error: 'rate limit exceeded', key });
    expect(answer.headers['preference-applied']).toBeUndefined();
    expect(await debugState(app.url, key)).toMatchObject({ NumDeniedThisWindow: 0, NumWaiting: 0 });
    expect(await decisions('turn_too_late')).toBe(counted + 1);
  });

  test('Retry-After counts the windows that earlier waiters take', async () => {
    await approve(app.url, key);
    const waiting = [begin(app.url, 'POST', `${ratePath(key)}?canWait=true`)];
    await untilWaiting(app.url, key, 1);
    const retryAfter = async (query: string): Promise<number> =>
      Number((await ask(query)).headers['retry-after']);
    const untilTurn = await retryAfter('canWait=true&maxWaitMillis=0');
    expect(untilTurn).toBeGreaterThan(WINDOW_SECONDS);
    expect(untilTurn).toBeLessThanOrEqual(2 * WINDOW_SECONDS);
    expect(await retryAfter('canWait=false')).toBeLessThanOrEqual(WINDOW_SECONDS);
    for (const request of waiting) request.disconnect();
  });

  test('a preference is a limit if the request can wait, and the answer says so', async () => {
    const approved = await ask('canWait=true', { Prefer: 'respond-async, wait=5' });
    expect([approved.status, approved.headers['preference-applied']]).toEqual([200, 'wait=5']);
    const denied = await ask('canWait=true', { Prefer: 'wait=5' });
    expect([denied.status, denied.headers['preference-applied']]).toEqual([429, 'wait=5']);
    const atOnce = await ask('canWait=false', { Prefer: 'wait=5' });
    expect([atOnce.status, atOnce.headers['preference-applied']]).toEqual([429, undefined]);
    const plain = await send(app.url, 'POST', ratePath(key), { Prefer: 'wait=5' });
    expect([plain.status, plain.headers['preference-applied']]).toEqual([429, undefined]);
  });

  test('a parameter overrides a preference', async () => {
    await approve(app.url, key);
    const answer = await ask('canWait=true&maxWaitMillis=0', { Prefer: 'wait=36000' });
    expect([answer.status, answer.headers['preference-applied']]).toEqual([429, undefined]);
  });

  test('a limit without canWait is rejected, and creates no key', async () => {
    for (const query of ['maxWaitMillis=5', 'canWait=false&maxWaitMillis=5']) {
      const answer = await ask(query);
      expect(answer.status).toBe(400);
      expect(answer.json()).toEqual({
        error: 'maxWaitMillis must be used with canWait=true',
        key,
      });
    }
    expect(await debugState(app.url, key)).toEqual({ Key: key, Found: false });
  });

  test('an element of a bulk request can have no limit', async () => {
    const answer = await sendBody(app.url, 'POST', JSON.stringify([{ key, maxWaitMillis: 5 }]));
    const error = 'maxWaitMillis must be left out: a check that may wait is sent alone';
    expect(answer.json()).toEqual([{ status: 400, error }]);
  });
});
