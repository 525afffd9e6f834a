import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, type Gateway, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { approve } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();

describe.each(bothLimiters(redis))("a descriptor's own limit (%s limiter)", (_name, settings) => {
  let app: GrpcApp;
  let gateway: Gateway;
  let key: string;
  beforeEach(async () => {
    app = await start({ ...settings(), MAX_REQUESTS: '2', WINDOW_MILLIS: '60000' });
    gateway = gatewayOf(app);
    key = uniqueKey();
  });

  const limited = (requests_per_unit: number) =>
    of(key, { limit: { requests_per_unit, unit: 'MINUTE' } });

  test('replaces the maximum', async () => {
    const response = await gateway.ask({ descriptors: [limited(5)] });

    expect(response.statuses).toMatchObject([
      {
        code: 'OK',
        current_limit: { requests_per_unit: 5, unit: 'MINUTE' },
        limit_remaining: 4,
      },
    ]);
    expect(headersOf(response)).toMatchObject({ 'X-RateLimit-Limit': '5' });
    expect((await debugState(app.url, key)).Config?.MaxRequestsPerWindow).toBe(5);
  });

  test('is rejected for a window of another length, and changes nothing', async () => {
    await approve(app.url, key);
    const descriptors = [of(key, { limit: { requests_per_unit: 9, unit: 'SECOND' } })];

    expect(await failureOf(gateway.ask({ descriptors }))).toEqual([
      'INVALID_ARGUMENT',
      'descriptors[0].limit.unit must be as long as the window of its key (60000 ms)',
    ]);
    expect(await debugState(app.url, key)).toMatchObject({
      Config: { MaxRequestsPerWindow: 2 },
      NumApprovedThisWindow: 1,
    });
  });
});
