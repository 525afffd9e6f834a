import { type TestApp, startTestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import {
  approve,
  approvedId,
  begin,
  type PendingRequest,
  ratePath,
  send,
} from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

describe.each(bothLimiters(redis))('waiting for room (%s limiter)', (_name, settings) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({
      ...settings(),
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '1',
      MAX_REQUESTS_IN_QUEUE: '4',
    });
  });
  afterAll(() => app.stop(0));

  /** Requests that wait, in this order. */
  async function queueUp(key: string, count: number): Promise<PendingRequest[]> {
    const waiting: PendingRequest[] = [];
    for (let n = 1; n <= count; n += 1) {
      waiting.push(begin(app.url, n % 2 ? 'POST' : 'GET', `/rate/${key}?canWait=true`));
      await untilWaiting(app.url, key, n);
    }
    return waiting;
  }

  async function release(key: string, requestId: string): Promise<void> {
    expect((await send(app.url, 'DELETE', `${ratePath(key)}/${requestId}`)).status).toBe(200);
  }

  test('ends with an ordinary approval', async () => {
    const key = uniqueKey();
    const first = await approve(app.url, key);
    const [waiting] = await queueUp(key, 1);
    await release(key, first);
    const answer = await waiting!.answer;

    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(Object.keys(answer.json() as object)).toEqual(['request_id']);
    expect(await debugState(app.url, key)).toMatchObject({
      NumApprovedThisWindow: 1,
      NumDeniedThisWindow: 0,
      NumWaiting: 0,
    });
  });

  test('a full queue answers with a 429 that does not count as a denial', async () => {
    const key = uniqueKey();
    await approve(app.url, key);
    const waiting = await queueUp(key, 4);
    const answer = await send(app.url, 'POST', `/rate/${key}?canWait=true`);

    expect(answer.status).toBe(429);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(answer.json()).toStrictEqual({ error: 'rate limit exceeded', key });
    expect(await debugState(app.url, key)).toMatchObject({
      NumApprovedThisWindow: 1,
      NumDeniedThisWindow: 0,
      NumWaiting: 4,
    });
    for (const request of waiting) request.disconnect();
  });
});

describe.each(bothLimiters(redis))(
  'waiting for the next window (%s limiter)',
  (_name, settings) => {
    test('ends when the window begins', async () => {
      const app = await startTestApp({ ...settings(), WINDOW_MILLIS: '200', MAX_REQUESTS: '1' });
      const key = uniqueKey();
      // Each window has one approval, so at least four of these have to wait for a window of their own.
      const answers = await Promise.all(
        Array.from({ length: 5 }, () => send(app.url, 'POST', `/rate/${key}?canWait=true`)),
      );
      await app.stop(0);

      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
      expect(new Set(answers.map(approvedId)).size).toBe(5);
    });
  },
);
