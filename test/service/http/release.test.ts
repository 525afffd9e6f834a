import { randomUUID } from 'node:crypto';

import { type TestApp, startTestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

function release(app: TestApp, key: string, requestId: string) {
  return send(app.url, 'DELETE', `${ratePath(key)}/${encodeURIComponent(requestId)}`);
}

describe.each(bothLimiters(redis))('a release (%s limiter)', (_name, settings) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ ...settings(), WINDOW_MILLIS: '3600000', MAX_REQUESTS: '2' });
  });
  afterAll(() => app.stop(0));

  test('answers with only the request id', async () => {
    const key = uniqueKey();
    const requestId = await approve(app.url, key);
    const answer = await release(app, key, requestId);

    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.json()).toStrictEqual({ request_id: requestId });
  });

  test('happens once: the second is not found and changes nothing', async () => {
    const key = uniqueKey();
    const requestId = await approve(app.url, key);
    await approve(app.url, key);
    await release(app, key, requestId);
    const second = await release(app, key, requestId);

    expect(second.status).toBe(404);
    expect(second.headers['content-type']).toBe('application/json');
    expect(second.json()).toStrictEqual({ error: 'request not found', key });
    expect((await debugState(app.url, key)).NumApprovedThisWindow).toBe(1);
  });

  test('succeeds once if many release the same approval at once', async () => {
    const key = uniqueKey();
    const requestId = await approve(app.url, key);
    await approve(app.url, key);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => release(app, key, requestId)),
    );

    expect(answers.map(({ status }) => status).sort()).toEqual([
      200,
      ...Array<number>(9).fill(404),
    ]);
    expect((await debugState(app.url, key)).NumApprovedThisWindow).toBe(1);
  });

  test('of an approval of another key is not found', async () => {
    const [key, other] = [uniqueKey(), uniqueKey()];
    const requestId = await approve(app.url, key);
    await approve(app.url, other);
    const answer = await release(app, other, requestId);

    expect(answer.status).toBe(404);
    expect(answer.json()).toStrictEqual({ error: 'request not found', key: other });
    expect((await debugState(app.url, key)).NumApprovedThisWindow).toBe(1);
    expect((await debugState(app.url, other)).NumApprovedThisWindow).toBe(1);
  });

  test('on a key that does not exist is not found and creates no key', async () => {
    const key = uniqueKey();
    const answer = await release(app, key, randomUUID());

    expect(answer.status).toBe(404);
    expect(answer.json()).toStrictEqual({ error: 'request not found', key });
    expect(await debugState(app.url, key)).toStrictEqual({ Key: key, Found: false });
  });

  test.each([
    ['not a UUID', 'x'],
    ['a number', '1'],
    ['blank', ' '],
    ['a control character', '\u0000'],
    ['a slash', 'a/b'],
    ['braces', '{}'],
    ['a wildcard', '*'],
    ['a name every object has', 'constructor'],
    ['__proto__', '__proto__'],
    ['beyond ASCII', '🚰'],
    ['very long', 'x'.repeat(5000)],
  ])('of an id that is %s is not found', async (_kind, requestId) => {
    const key = uniqueKey();
    await approve(app.url, key);
    const answer = await release(app, key, requestId);

    expect(answer.status).toBe(404);
    expect(answer.json()).toStrictEqual({ error: 'request not found', key });
    expect((await debugState(app.url, key)).NumApprovedThisWindow).toBe(1);
  });
});

describe.each(bothLimiters(redis))(
  'a release in a later window (%s limiter)',
  (_name, settings) => {
    let app: TestApp;
    beforeAll(async () => {
      app = await startTestApp({ ...settings(), WINDOW_MILLIS: '300', MAX_REQUESTS: '1' });
    });
    afterAll(() => app.stop(0));

    test('is not found while the key lives on', async () => {
      const key = uniqueKey();
      const requestId = await approve(app.url, key);
      // Each window has one approval, so the next approval is in another window.
      await until(async () => (await send(app.url, 'POST', `/rate/${key}`)).status === 200);
      const answer = await release(app, key, requestId);

      expect(answer.status).toBe(404);
      expect(answer.json()).toStrictEqual({ error: 'request not found', key });
    });
  },
);
