import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { codesOf, type Gateway, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { approve } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';

const start = useGrpcApps();
const gatewayOf = useGateways();

const SECONDS = expect.stringMatching(/^3[56]\d\d$/) as unknown;

describe('the headers for the client', () => {
  let app: GrpcApp;
  let gateway: Gateway;
  beforeEach(async () => {
    app = await start({ MAX_REQUESTS: '5' });
    gateway = gatewayOf(app);
  });

  test('of an approval say how much is left', async () => {
    expect(headersOf(await gateway.askFor(uniqueKey()))).toStrictEqual({
      'X-RateLimit-Limit': '5',
      'X-RateLimit-Remaining': '4',
      'X-RateLimit-Reset': SECONDS,
    });
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
