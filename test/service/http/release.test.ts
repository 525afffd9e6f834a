import { bothLimiters } from '../../support/both-limiters.js';
import { bodyOf } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { useApp } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

describe.each(bothLimiters(redis))('a release (%s limiter)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), WINDOW_MILLIS: '3600000', MAX_REQUESTS: '2' }));
  const key = useHttpKey(() => app);

  test('is answered with JSON, whether the approval is found or not', async () => {
    const requestId = await key.approve();
    for (const status of [200, 404]) {
      const answer = await key.release(requestId);
      expect(answer.status).toBe(status);
      expect(answer.headers).toMatchObject({
        'content-type': 'application/json',
        'x-content-type-options': 'nosniff',
      });
    }
  });

  test('on a key that does not exist creates no key', async () => {
    expect((await key.release('7a0f5f0c-7ed7-4f6b-9a0d-111111111111')).status).toBe(404);
    expect(await key.state()).toStrictEqual({ Key: key.name, Found: false });
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
    await key.approve();

    expect(bodyOf(await key.release(requestId))).toStrictEqual([
      404,
      { error: 'request not found', key: key.name },
    ]);
    expect((await key.state()).NumApprovedThisWindow).toBe(1);
  });
});
