import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { codesOf, type Gateway, of, useGateways } from '../../support/grpc-gateway.js';
import { approve } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();

describe.each(bothLimiters(redis))('a decision (%s limiter)', (_name, settings) => {
  let app: GrpcApp;
  let gateway: Gateway;
  beforeEach(async () => {
    app = await start({ ...settings(), MAX_REQUESTS: '2' });
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

  test('on several descriptors has their statuses in their order', async () => {
    const keys = [uniqueKey(), uniqueKey(), uniqueKey(), uniqueKey()];
    await approve(app.url, keys[1]!);
    await approve(app.url, keys[3]!);
    const { overall_code, statuses } = await gateway.ask({
      descriptors: keys.map((key) => of(key)),
    });

    expect(overall_code).toBe('OK');
    expect(statuses.map(({ limit_remaining }) => limit_remaining)).toEqual([1, 0, 1, 0]);
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
