import { decisionsOf, overviewOf } from '../../support/dashboard/dashboard-page.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { untilWaiting } from '../../support/debug-state.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { of, useGateways } from '../../support/grpc-gateway.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();

describe.each(bothLimiters(redis))('each descriptor (%s limiter)', (_name, settings) => {
  async function startWithRules(): Promise<GrpcApp> {
    return start(
      { ...settings() },
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
