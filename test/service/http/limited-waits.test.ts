import { sendBody } from '../../support/bulk-client.js';
import { bodyOf } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { scrape } from '../../support/prometheus-text.js';
import { useApp } from '../../support/use-apps.js';

describe('waits with a limit', () => {
  // So long that no turn comes while a test runs.
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }));
  const key = useHttpKey(() => app);

  test('that would end too soon are a denial without a preference, and counted as such', async () => {
    await key.approve();
    const answer = await key.check('?canWait=true&maxWaitMillis=1000');
    expect(bodyOf(answer)).toEqual([429, { error: 'rate limit exceeded', key: key.name }]);
    expect(answer.headers['preference-applied']).toBeUndefined();
    const reason = { outcome: 'denied', reason: 'turn_too_late', decided_by: 'store' };
    expect((await scrape(app.url)).value('ratelimit_decisions_total', reason)).toBe(1);
  });

  test.each([
    ['?canWait=true', 'wait=5', 'wait=5'],
    ['?canWait=false', 'wait=5', undefined],
    ['', 'wait=5', undefined],
    ['?canWait=true&maxWaitMillis=0', 'wait=36000', undefined],
  ])(
    'of a check with "%s" and the preference %s have %s applied',
    async (query, Prefer, applied) => {
      await key.approve();
      const { status, headers } = await key.check(query, { Prefer });
      expect([status, headers['preference-applied']]).toEqual([429, applied]);
    },
  );

  test('have their preference applied among others, also in an approval', async () => {
    const { status, headers } = await key.check('?canWait=true', {
      Prefer: 'respond-async, wait=5',
    });
    expect([status, headers['preference-applied']]).toEqual([200, 'wait=5']);
  });

  test.each(['?maxWaitMillis=5', '?canWait=false&maxWaitMillis=5'])(
    'are a 400 without canWait, and create no key: %s',
    async (query) => {
      expect(bodyOf(await key.check(query))).toEqual([
        400,
        { error: 'maxWaitMillis must be used with canWait=true', key: key.name },
      ]);
      expect(await key.state()).toEqual({ Key: key.name, Found: false });
    },
  );

  test('can not be asked for by an element of a bulk request', async () => {
    const elements = [{ key: key.name, maxWaitMillis: 5 }];
    const answer = await sendBody(app.url, 'POST', JSON.stringify(elements));
    const error = 'maxWaitMillis must be left out: a check that may wait is sent alone';
    expect(answer.json()).toEqual([{ status: 400, error }]);
  });
});
