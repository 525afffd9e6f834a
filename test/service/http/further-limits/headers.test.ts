import { type AppByRules, useAppsByRules } from '../../../support/app-by-rules.js';
import { type Answer, ratePath, send } from '../../../support/http-client.js';

const serve = useAppsByRules();

/** Ten requests a second, a thousand hits an hour and three a day that no release gives back. */
const RULE = {
  key_pattern: 'key',
  name: 'tenants',
  max_requests_per_window: 10,
  window_millis: 1000,
  limits: [
    { name: 'hour', max_hits_per_window: 1000, window_millis: 3_600_000 },
    { name: 'day', max_requests_per_window: 3, window_millis: 86_400_000, releases_return: false },
  ],
};

const check = ({ url }: AppByRules, query = ''): Promise<Answer> =>
  send(url, 'POST', ratePath('key') + query);

/** The headers of any form that describe the limits. */
function limitHeaders({ headers }: Answer): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.includes('ratelimit')));
}

describe('in the form of the draft, the headers', () => {
  test('list the limits in force, also while the rules have others', async () => {
    const app = await serve([RULE]);
    await check(app);
    // The own window has another length, so that all limits change when it ends.
    app.change({ ...RULE, window_millis: 2000, limits: [] });
    expect(limitHeaders(await check(app))).toMatchObject({
      ratelimit: '"tenants";r=8;t=1, "hour";r=998;t=3600, "day";r=1;t=86400',
      'ratelimit-policy': expect.stringContaining('"day";q=3;w=86400') as unknown,
    });
    await app.clock.advance(1000);
    expect(limitHeaders(await check(app))).toEqual({
      'ratelimit-policy': '"tenants";q=10;w=2',
      ratelimit: '"tenants";r=9;t=2',
    });
  });

  test.each([
    [{ max_hits_per_window: 900 }, '"hour";q=900;w=3600'],
    [{ window_millis: 7_200_000 }, '"hour";q=1000;w=7200'],
    [{ name: 'long' }, '"long";q=1000;w=3600'],
  ])('follow a change of the rules by %j at once', async (changed, item) => {
    const app = await serve([RULE]);
    await check(app);
    const [hour, day] = RULE.limits;
    app.change({ ...RULE, limits: [{ ...hour, ...changed }, day] });
    expect((await check(app)).headers['ratelimit-policy']).toBe(
      `"tenants";q=10;w=1, ${item}, "day";q=3;w=86400`,
    );
  });
});

describe('in the older form, the headers', () => {
  test('of an approval describe the limit that has the least left', async () => {
    const app = await serve([RULE], { RATE_LIMIT_HEADERS: 'legacy' });
    expect(limitHeaders(await check(app))).toEqual({
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '2',
      'x-ratelimit-reset': '86400',
    });
  });

  test('of a denial describe the limit that denied, even if another has less left', async () => {
    const [hour, day] = RULE.limits;
    const limits = [{ ...hour, max_hits_per_window: 15 }, day];
    const app = await serve([{ ...RULE, limits }], { RATE_LIMIT_HEADERS: 'legacy' });
    await check(app, '?hits=9');
    await app.clock.advance(1000);
    await check(app, '?hits=2');
    // The hour has 4 hits left, and the day one request.
    expect(limitHeaders(await check(app, '?hits=5'))).toEqual({
      'x-ratelimit-limit': '15',
      'x-ratelimit-remaining': '4',
      'x-ratelimit-reset': '3599',
    });
  });
});
