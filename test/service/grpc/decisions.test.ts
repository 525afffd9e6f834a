import { decisionsOf, overviewOf } from '../../support/dashboard/dashboard-page.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { codesOf, type Gateway, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { approve } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const start = useGrpcApps();
const gatewayOf = useGateways();

describe('a decision', () => {
  let app: GrpcApp;
  let gateway: Gateway;
  beforeEach(async () => {
    app = await start({ MAX_REQUESTS: '2' });
    gateway = gatewayOf(app);
  });

  const approvedOf = async (key: string): Promise<number | undefined> =>
    (await debugState(app.url, key)).NumApprovedThisWindow;

  test('says how much of the limit is left, down to nothing', async () => {
    const key = uniqueKey();
    const current_limit = { requests_per_unit: 2, unit: 'HOUR', name: 'default' };
    const answers = [
      await gateway.askFor(key),
      await gateway.askFor(key),
      await gateway.askFor(key),
    ];

    expect(answers).toMatchObject([
      { overall_code: 'OK', statuses: [{ code: 'OK', current_limit, limit_remaining: 1 }] },
      { overall_code: 'OK', statuses: [{ code: 'OK', current_limit, limit_remaining: 0 }] },
      {
        overall_code: 'OVER_LIMIT',
        statuses: [{ code: 'OVER_LIMIT', current_limit, limit_remaining: 0 }],
      },
    ]);
    for (const { statuses } of answers) {
      const { seconds, nanos } = statuses[0]!.duration_until_reset!;
      const millis = seconds * 1000 + nanos / 1e6;
      expect(millis).toBeGreaterThan(3_500_000);
      expect(millis).toBeLessThanOrEqual(3_600_000);
    }
    expect(await approvedOf(key)).toBe(2);
  });

  test('on several descriptors approves none if one is denied', async () => {
    const keys = [uniqueKey(), uniqueKey(), uniqueKey()];
    await approve(app.url, keys[1]!, '?maxRequests=1');
    const response = await gateway.ask({ descriptors: keys.map((key) => of(key)) });

    expect(response.overall_code).toBe('OVER_LIMIT');
    expect(codesOf(response)).toEqual(['OK', 'OVER_LIMIT', 'OK']);
    expect(await Promise.all(keys.map(approvedOf))).toEqual([0, 1, 0]);
    expect(await debugState(app.url, keys[1]!)).toMatchObject({ NumDeniedThisWindow: 1 });
  });
});

test.each([
  [1000, 'SECOND'],
  [60_000, 'MINUTE'],
  [3_600_000, 'HOUR'],
  [86_400_000, 'DAY'],
  [30 * 86_400_000, 'MONTH'],
  [365 * 86_400_000, 'YEAR'],
  [61_000, 'UNKNOWN'],
])('a window of %d ms is reported as %s', async (windowMillis, unit) => {
  const app = await start({ WINDOW_MILLIS: String(windowMillis) });
  const { statuses } = await gatewayOf(app).askFor(uniqueKey());

  expect(statuses).toMatchObject([{ current_limit: { requests_per_unit: 1, unit } }]);
});

const SECONDS = expect.stringMatching(/^3[56]\d\d$/) as unknown;

describe('the headers for the client', () => {
  let app: GrpcApp;
  let gateway: Gateway;
  beforeEach(async () => {
    app = await start({ MAX_REQUESTS: '5' });
    gateway = gatewayOf(app);
  });

  test('of a denial also say when to come back', async () => {
    const key = uniqueKey();
    await approve(app.url, key, '?maxRequests=1');

    expect(headersOf(await gateway.askFor(key))).toStrictEqual({
      'X-RateLimit-Limit': '1',
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': SECONDS,
      'Retry-After': SECONDS,
    });
  });

  test('of several descriptors describe the descriptor that has the least left', async () => {
    const [plenty, little] = [uniqueKey(), uniqueKey()];
    await approve(app.url, little, '?maxRequests=3');
    const response = await gateway.ask({ descriptors: [of(plenty), of(little), of(uniqueKey())] });

    expect(headersOf(response)).toMatchObject({
      'X-RateLimit-Limit': '3',
      'X-RateLimit-Remaining': '1',
    });
  });

  test('of several descriptors describe a denied descriptor, even if another has less left', async () => {
    const [last, full] = [uniqueKey(), uniqueKey()];
    await approve(app.url, full, '?maxRequests=4');
    const response = await gateway.ask({
      descriptors: [
        of(last, { limit: { requests_per_unit: 1, unit: 'HOUR' } }),
        of(full, { hits_addend: { value: 4 } }),
      ],
    });

    expect(headersOf(response)).toStrictEqual({
      'X-RateLimit-Limit': '4',
      'X-RateLimit-Remaining': '3',
      'X-RateLimit-Reset': SECONDS,
      'Retry-After': SECONDS,
    });
  });
});

test('the headers of several denials say when the longest of their windows ends', async () => {
  const app = await start(
    {},
    {
      rules: [
        { key_pattern: 'minute', window_millis: 60_000 },
        { key_pattern: 'day', window_millis: 86_400_000 },
      ],
    },
  );
  const gateway = gatewayOf(app);
  const keys = ['minute', 'day', 'minute'];
  for (const key of ['minute', 'day']) await gateway.askFor(key);
  const response = await gateway.ask({ descriptors: keys.map((key) => of(key)) });

  expect(Number(headersOf(response)['Retry-After'])).toBeGreaterThan(86_000);
});

test('RATE_LIMIT_HEADERS=off leaves the limit out, and Retry-After in', async () => {
  const app = await start({ RATE_LIMIT_HEADERS: 'off' });
  const gateway = gatewayOf(app);
  const key = uniqueKey();
  const approval = await gateway.askFor(key);
  expect(headersOf(approval)).toStrictEqual({});
  expect(approval.statuses).toMatchObject([{ limit_remaining: 0 }]);

  expect(headersOf(await gateway.askFor(key))).toStrictEqual({ 'Retry-After': SECONDS });
});

test('a shadow denial is in a header, unless another limit denies the call', async () => {
  const app = await start(
    {},
    { rules: [{ key_pattern: 'quiet', max_requests_per_window: 0, shadow: true }] },
  );
  const gateway = gatewayOf(app);
  const full = uniqueKey();
  await approve(app.url, full);

  const passed = await gateway.ask({ descriptors: [of('quiet')] });
  expect([passed.overall_code, codesOf(passed)]).toEqual(['OK', ['OK']]);
  expect(headersOf(passed)).toMatchObject({ 'X-Sluice-Shadow': 'denied' });
  const refused = await gateway.ask({ descriptors: [of('quiet'), of(full)] });
  expect(codesOf(refused)).toEqual(['OK', 'OVER_LIMIT']);
  expect(Object.keys(headersOf(refused))).toEqual([
    'X-RateLimit-Limit',
    'X-RateLimit-Remaining',
    'X-RateLimit-Reset',
    'Retry-After',
  ]);
});

describe('each descriptor', () => {
  async function startWithRules(): Promise<GrpcApp> {
    return start(
      {},
      {
        rules: [
          { key_pattern: 'patient-.*', key_pattern_is_regex: true, max_wait_millis: 86_400_000 },
          { key_pattern: 'quiet', max_requests_per_window: 0, shadow: true },
        ],
      },
    );
  }

  test('is counted by its outcome', async () => {
    const app = await startWithRules();
    const gateway = gatewayOf(app);
    const [key, patient] = [uniqueKey(), `patient-${uniqueKey()}`];
    await gateway.ask({ descriptors: [of(key), of(patient)] });
    await gateway.ask({ descriptors: [of(key), of('quiet')] });
    const call = gateway.begin({ descriptors: [of(patient)] });
    await untilWaiting(app.url, patient, 1);
    call.cancel();
    await untilWaiting(app.url, patient, 0);

    await until(async () => decisionsOf(await overviewOf(app.url)).withdrawn === 1);
    expect(decisionsOf(await overviewOf(app.url))).toEqual({
      approved: 2,
      denied: 1,
      shadowed: 1,
      withdrawn: 1,
      failed: 0,
    });
  });

  test('that is denied is among the recent denials of the dashboard', async () => {
    const app = await startWithRules();
    const key = uniqueKey();
    for (let i = 0; i < 3; i += 1) await gatewayOf(app).askFor(key);

    expect((await overviewOf(app.url, { state: 'denied' })).keys).toMatchObject([
      { key, recentDenials: { count: 2, lastReason: 'limit_reached' } },
    ]);
  });
});

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const OF_AN_HOUR = expect.stringMatching(/^3[56]\d\d$/) as unknown;

describe('a descriptor of a key with further limits', () => {
  let app: GrpcApp;
  let gateway: Gateway;
  let key: string;
  beforeEach(() => {
    key = uniqueKey();
  });

  /** Starts with three hits a minute, and these limits besides. */
  async function startWith(...limits: readonly object[]): Promise<void> {
    const own = { name: 'tenants', max_requests_per_window: 3, window_millis: MINUTE };
    app = await start({ MAX_REQUESTS: '1' }, { rules: [{ key_pattern: key, ...own, limits }] });
    gateway = gatewayOf(app);
  }

  const hour = (maximum: object): object => ({ name: 'hour', window_millis: HOUR, ...maximum });

  const ask = (hits_addend = 1) => gateway.ask({ hits_addend, descriptors: [of(key)] });

  const ownMaximum = { requests_per_unit: 3, unit: 'MINUTE', name: 'tenants' };

  test('shows the limit that has the least left', async () => {
    await startWith(hour({ max_requests_per_window: 2 }));
    const response = await ask();

    expect(response.statuses).toMatchObject([
      {
        code: 'OK',
        current_limit: { requests_per_unit: 2, unit: 'HOUR', name: 'hour' },
        limit_remaining: 1,
      },
    ]);
    expect(response.statuses[0]?.duration_until_reset?.seconds).toBeGreaterThan(3500);
    expect(headersOf(response)).toMatchObject({
      'X-RateLimit-Limit': '2',
      'X-RateLimit-Remaining': '1',
      'X-RateLimit-Reset': OF_AN_HOUR,
    });
  });

  test('shows the limit that denied it, even if another has less left', async () => {
    await startWith(hour({ max_requests_per_window: 2 }));
    await ask();
    const response = await ask(3);

    expect(response.statuses).toMatchObject([
      { code: 'OVER_LIMIT', current_limit: ownMaximum, limit_remaining: 2 },
    ]);
    expect(Number(headersOf(response)['Retry-After'])).toBeLessThanOrEqual(60);
  });
});
