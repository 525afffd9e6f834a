import { type AppByRules, useAppsByRules } from '../../../support/app-by-rules.js';
import { checkMany } from '../../../support/bulk-client.js';
import { type Answer, approve, ratePath, send } from '../../../support/http-client.js';

const serve = useAppsByRules();

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Two requests a minute, of four an hour. */
const RULE = {
  key_pattern: 'key',
  name: 'tenants',
  max_requests_per_window: 2,
  window_millis: MINUTE,
  limits: [{ name: 'hour', max_requests_per_window: 4, window_millis: HOUR }],
};
const HITS = {
  ...RULE,
  max_requests_per_window: 10,
  limits: [{ name: 'hour', max_hits_per_window: 15, window_millis: HOUR }],
};

const check = ({ url }: AppByRules, query = ''): Promise<Answer> =>
  send(url, 'POST', ratePath('key') + query);

/** What a denial says. */
const denialIn = ({ status, headers, json }: Answer): unknown[] => [
  status,
  headers['retry-after'],
  json(),
];

const deniedBy = (limit: string | undefined, retryAfter: string): unknown[] => [
  429,
  retryAfter,
  { error: 'rate limit exceeded', key: 'key', ...(limit === undefined ? {} : { limit }) },
];

/** Takes all of the minute. */
async function fillMinute({ url }: AppByRules): Promise<void> {
  await approve(url, 'key');
  await approve(url, 'key');
}

describe('a denial names the limit that has too little left, and the end of its window', () => {
  test("by the rule's name, if it is the key's own maximum", async () => {
    const app = await serve([RULE]);
    await fillMinute(app);
    await app.clock.advance(15_000);
    expect(denialIn(await check(app))).toEqual(deniedBy('tenants', '45'));
  });

  test('also if the queue is full', async () => {
    const app = await serve([{ ...RULE, max_requests_in_queue: 0 }]);
    await fillMinute(app);
    expect(denialIn(await check(app, '?canWait=true'))).toEqual(deniedBy('tenants', '60'));
  });

  test.each(['legacy', 'off'])('also if the headers of the limit are %s', async (form) => {
    const app = await serve([RULE], { RATE_LIMIT_HEADERS: form });
    await fillMinute(app);
    expect(denialIn(await check(app))).toEqual(deniedBy('tenants', '60'));
  });

  test('in each element of a bulk request', async () => {
    const app = await serve([HITS, { ...RULE, key_pattern: 'plain', limits: [] }]);
    const [, , third] = await checkMany(app.url, [
      { key: 'key', hits: 8 },
      { key: 'key', hits: 2 },
      { key: 'key', hits: 1 },
    ]);
    expect(third).toEqual({
      status: 429,
      error: 'rate limit exceeded',
      retryAfter: 60,
      limit: 'tenants',
    });
    await app.clock.advance(MINUTE);
    const plain = { key: 'plain' };
    const results = await checkMany(app.url, [{ key: 'key', hits: 6 }, plain, plain, plain]);
    expect(results).toEqual([
      { status: 429, error: 'rate limit exceeded', retryAfter: 3540, limit: 'hour' },
      { status: 200, request_id: expect.any(String) as unknown },
      { status: 200, request_id: expect.any(String) as unknown },
      { status: 429, error: 'rate limit exceeded', retryAfter: 60 },
    ]);
  });
});

test('a denial in a pause names no limit, and lasts until one that is full has room', async () => {
  const app = await serve([RULE]);
  for (let minute = 0; minute < 2; minute += 1) {
    await fillMinute(app);
    await app.clock.advance(MINUTE);
  }
  await send(app.url, 'PUT', `${ratePath('key')}?pauseMillis=5000`);
  expect(denialIn(await check(app))).toEqual(deniedBy(undefined, '3480'));
});

test('a denial that a rule in shadow mode lets pass names no limit', async () => {
  const app = await serve([{ ...RULE, shadow: true }]);
  await fillMinute(app);
  const { status, headers, json } = await check(app);
  expect([status, headers['x-sluice-shadow']]).toEqual([200, 'denied']);
  expect(json()).toEqual({ request_id: expect.any(String) as unknown });
});

describe('a check of more hits than a limit has is a 400 that names the limit', () => {
  const tooMany = async (app: AppByRules, query: string): Promise<unknown> => {
    const { status, json } = await check(app, query);
    return [status, (json() as { error: string }).error];
  };

  test('if it is a further limit', async () => {
    const rule = { ...HITS, max_requests_per_window: 20 };
    const app = await serve([rule]);
    await approve(app.url, 'key', '?hits=15');
    const error = 'hits must be at most 15, the maximum of the limit hour, not 16';
    expect(await tooMany(app, '?hits=16')).toEqual([400, error]);
    expect(await checkMany(app.url, [{ key: 'key', hits: 16 }])).toEqual([{ status: 400, error }]);
  });

  test("if it is the key's own maximum", async () => {
    const app = await serve([HITS]);
    const error = 'hits must be at most 10, the maximum of the key, not 11';
    expect(await tooMany(app, '?hits=11')).toEqual([400, error]);
    expect(await tooMany(app, '?hits=16')).toEqual([400, error.replace('11', '16')]);
  });
});
