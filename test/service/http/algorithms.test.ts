import { type AppByRules, useAppsByRules } from '../../support/app-by-rules.js';
import { checkMany } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { type Answer, approve, bodyOf, ratePath, send } from '../../support/http-client.js';

const serve = useAppsByRules();

const MINUTE = 60_000;
/** Six a minute, so one in ten seconds, and three at once. */
const BUCKET = {
  key_pattern: 'key',
  algorithm: 'token_bucket',
  burst: 3,
  max_requests_per_window: 6,
  window_millis: MINUTE,
};
const SLIDING = {
  key_pattern: 'key',
  algorithm: 'sliding_window',
  steps: 6,
  max_requests_per_window: 6,
  window_millis: MINUTE,
};

const check = ({ url }: AppByRules, query = ''): Promise<Answer> =>
  send(url, 'POST', ratePath('key') + query);

const limitHeaders = ({ headers }: Answer): unknown[] => [
  headers['ratelimit-policy'],
  headers.ratelimit,
];

describe('the state of a key', () => {
  test.each([
    [BUCKET, { Algorithm: 'token_bucket', Burst: 3 }],
    [SLIDING, { Algorithm: 'sliding_window', Steps: 6 }],
  ])('has the algorithm of each of its limits: %j', async (own, algorithm) => {
    const further = [
      { name: 'slides', algorithm: 'sliding_window' },
      { name: 'paces', algorithm: 'token_bucket', burst: 2 },
    ].map((one) => ({ ...one, max_hits_per_window: 9, window_millis: MINUTE }));
    const fixed = { name: 'fixed', max_requests_per_window: 9, window_millis: MINUTE };
    const { url } = await serve([{ ...own, limits: [...further, fixed] }]);
    await approve(url, 'key', '?hits=2');
    const common = { WindowMillis: MINUTE, MaxHitsPerWindow: 9 };
    const state = {
      Key: 'key',
      Config: { WindowMillis: MINUTE, MaxRequestsPerWindow: 6, MaxRequestsInQueue: 400 },
      ...algorithm,
      NumApprovedThisWindow: 2,
      NumDeniedThisWindow: 0,
      NumWaiting: 0,
      Limits: [
        {
          Name: 'slides',
          ...common,
          Algorithm: 'sliding_window',
          Steps: 10,
          NumApprovedThisWindow: 2,
        },
        { Name: 'paces', ...common, Algorithm: 'token_bucket', Burst: 2, NumApprovedThisWindow: 2 },
        { Name: 'fixed', WindowMillis: MINUTE, MaxRequestsPerWindow: 9, NumApprovedThisWindow: 1 },
      ],
      Found: true,
    };
    expect(await debugState(url, 'key')).toStrictEqual(state);
    const listed = (await send(url, 'GET', '/debug')).json();
    expect(listed).toMatchObject({ Instances: { key: state } });
  });
});

test('a check with more hits than a burst is a 400 that names the burst', async () => {
  const app = await serve([BUCKET]);
  const error = 'hits must be at most 3, the burst of the key, not 4';
  expect(bodyOf(await check(app, '?hits=4'))).toEqual([400, { error, key: 'key' }]);
  expect(bodyOf(await check(app, '?hits=4&canWait=true'))).toEqual([400, { error, key: 'key' }]);
  expect(await checkMany(app.url, [{ key: 'key', hits: 4 }])).toEqual([{ status: 400, error }]);
  await approve(app.url, 'key', '?hits=3');
});

describe('a key with a calendar', () => {
  // The clock of these tests begins on 14 November 2023 at 22:13:20 in UTC, and at 23:13:20 in Berlin.
  const MONTH = {
    key_pattern: 'key',
    max_requests_per_window: 2,
    calendar: 'month',
    time_zone: 'Europe/Berlin',
  };
  const HOUR = 3_600_000;
  const DAILY = { name: 'daily', max_hits_per_window: 2, calendar: 'day' };

  test('has it in its state, and in the state of each of its limits', async () => {
    const { url } = await serve([{ ...MONTH, limits: [DAILY] }]);
    await approve(url, 'key');
    expect(await debugState(url, 'key')).toStrictEqual({
      Key: 'key',
      Config: { WindowMillis: 720 * HOUR, MaxRequestsPerWindow: 2, MaxRequestsInQueue: 400 },
      Calendar: 'month',
      TimeZone: 'Europe/Berlin',
      NumApprovedThisWindow: 1,
      NumDeniedThisWindow: 0,
      NumWaiting: 0,
      Limits: [
        {
          Name: 'daily',
          WindowMillis: 24 * HOUR,
          MaxHitsPerWindow: 2,
          Calendar: 'day',
          TimeZone: 'UTC',
          NumApprovedThisWindow: 1,
        },
      ],
      Found: true,
    });
  });

  test('has the length of the current window in its headers, and when it ends', async () => {
    const app = await serve([{ ...MONTH, calendar: 'day' }]);
    const left = 46 * 60 + 40;
    expect(limitHeaders(await check(app))).toEqual([
      '"default";q=2;w=86400',
      `"default";r=1;t=${left}`,
    ]);
    await check(app);
    const denied = await check(app);
    expect([denied.status, denied.headers['retry-after']]).toEqual([429, `${left}`]);
    await app.clock.advance(left * 1000);
    expect((await check(app)).status).toBe(200);
  });
});

test('windowMillis on a key with a calendar is a 400 that names the calendar', async () => {
  const app = await serve([{ key_pattern: 'key', calendar: 'day' }]);
  const error = 'windowMillis must not be set: the limit of the key is a calendar day';
  expect(bodyOf(await check(app, '?windowMillis=1000'))).toEqual([400, { error, key: 'key' }]);
  expect(await debugState(app.url, 'key')).toEqual({ Key: 'key', Found: false });
});

test('windowMillis is taken if only a further limit is no fixed window', async () => {
  const paces = { name: 'paces', max_hits_per_window: 9, window_millis: MINUTE };
  const limits = [{ ...paces, algorithm: 'token_bucket' }];
  const app = await serve([{ key_pattern: 'key', limits }]);
  expect((await check(app, '?windowMillis=1000')).status).toBe(200);
});

describe('the headers', () => {
  test('of a token bucket say what is left of the burst, and when one more hit fits', async () => {
    const app = await serve([BUCKET]);
    const policy = '"default";q=6;w=60';
    expect(limitHeaders(await check(app, '?hits=2'))).toEqual([policy, '"default";r=1;t=10']);
    await app.clock.advance(4000);
    expect(limitHeaders(await check(app))).toEqual([policy, '"default";r=0;t=6']);
  });

  test('of a sliding window say when its oldest step ends', async () => {
    const app = await serve([SLIDING]);
    const policy = '"default";q=6;w=60';
    expect(limitHeaders(await check(app))).toEqual([policy, '"default";r=5;t=70']);
    await app.clock.advance(25_000);
    expect(limitHeaders(await check(app))).toEqual([policy, '"default";r=4;t=45']);
  });
});

describe('headers of limits', () => {
  /** The headers of any form that describe the limit. */
  function limitHeaders({ headers }: Answer): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(headers).filter(([name]) => name.includes('ratelimit')),
    );
  }

  const HOUR = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '2' };

  test.each([
    ['draft', { 'ratelimit-policy': '"default";q=2;w=3600', ratelimit: '"default";r=1;t=3600' }],
    [
      'legacy',
      { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '3600' },
    ],
    ['off', {}],
  ])('the headers of the form %s are %j', async (RATE_LIMIT_HEADERS, headers) => {
    const { url } = await serve([], { ...HOUR, RATE_LIMIT_HEADERS });
    expect(limitHeaders(await send(url, 'POST', '/rate/key'))).toEqual(headers);
  });

  test('the headers have the name of the rule, and no window length unless it is in whole seconds', async () => {
    const rule = {
      key_pattern: 'key',
      name: 'tenants/gold',
      window_millis: 3_600_001,
      shadow: true,
    };
    const { url } = await serve([rule], { MAX_REQUESTS: '1' });
    await send(url, 'POST', '/rate/key');
    const passed = await send(url, 'POST', '/rate/key');
    expect([passed.status, passed.headers['x-sluice-shadow']]).toEqual([200, 'denied']);
    expect(limitHeaders(passed)).toEqual({
      'ratelimit-policy': '"tenants/gold";q=1',
      ratelimit: '"tenants/gold";r=0;t=3601',
    });
  });

  test('the headers are left out if nothing was counted', async () => {
    const { url } = await serve([], HOUR);
    expect(limitHeaders(await send(url, 'POST', '/rate/key?canWait=perhaps'))).toEqual({});
    expect(limitHeaders(await send(url, 'GET', '/healthz'))).toEqual({});
  });
});
