import { debugState } from '../../support/debug-state.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { type Gateway, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';

const start = useGrpcApps();
const gatewayOf = useGateways();

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

  test('gives all back if another descriptor is denied', async () => {
    await startWith(
      hour({ max_requests_per_window: 5 }),
      hour({ name: 'starts', max_requests_per_window: 2, releases_return: false }),
    );
    const full = uniqueKey();
    await gateway.askFor(full);
    const { overall_code } = await gateway.ask({ descriptors: [of(key), of(full)] });

    expect(overall_code).toBe('OVER_LIMIT');
    const { headers } = await send(app.url, 'POST', ratePath(key));
    expect(headers.ratelimit).toMatch(/^"tenants";r=2;t=\d+, "hour";r=4;t=\d+, "starts";r=1;t=/);
    expect(await debugState(app.url, key)).toMatchObject({ NumApprovedThisWindow: 1 });
  });
});
