import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { type GrpcApp, startGrpcApp } from '../../support/grpc-app.js';
import { codesOf, failureOf, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { checkUntilLogged, STORE_BACK, STORE_DOWN } from '../../support/outage.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { uniqueKey } from '../../support/unique-key.js';

const gatewayOf = useGateways();

describeWithRedisProgram('while Redis is down', () => {
  let redis: RedisProcess;
  let app: GrpcApp;
  afterEach(async () => {
    await app.stop(0);
    await redis.stop();
  });

  async function startAndGoDown(policy: string): Promise<void> {
    redis = await startRedisProcess();
    app = await startGrpcApp({
      REDIS_URL: redis.url,
      STORE_OUTAGE_POLICY: policy,
      STORE_TIMEOUT_MILLIS: '1000',
    });
    await redis.kill();
    await checkUntilLogged(app, STORE_DOWN);
  }

  test('a call fails, and is not denied, under the policy deny until Redis is back', async () => {
    await startAndGoDown('deny');
    const gateway = gatewayOf(app);

    expect(await failureOf(gateway.askFor(uniqueKey()))).toEqual([
      'UNAVAILABLE',
      'store unavailable',
    ]);
    await redis.restart({ withData: false });
    await app.logged(({ msg }) => msg === STORE_BACK);
    expect((await gateway.askFor(uniqueKey())).overall_code).toBe('OK');
  });

  test('every call is approved under the policy allow, and its answer names the policy', async () => {
    await startAndGoDown('allow');
    const gateway = gatewayOf(app);
    const key = uniqueKey();

    for (let i = 0; i < 5; i += 1) {
      const response = await gateway.ask({ hits_addend: 3, descriptors: [of(key), of(key)] });
      expect(response.overall_code).toBe('OK');
      expect(response.statuses).toMatchObject([{ code: 'OK' }, { code: 'OK' }]);
      expect(headersOf(response)).toStrictEqual({ 'X-Sluice-Outage-Policy': 'allow' });
    }
  });

  test('this replica decides and gives back alone under the policy local', async () => {
    await startAndGoDown('local');
    const gateway = gatewayOf(app);
    const [full, free] = [uniqueKey(), uniqueKey()];
    expect(headersOf(await gateway.askFor(full))).toMatchObject({
      'X-Sluice-Outage-Policy': 'local',
      'X-RateLimit-Remaining': '0',
    });
    const refused = await gateway.ask({ descriptors: [of(free), of(full)] });
    expect(codesOf(refused)).toEqual(['OK', 'OVER_LIMIT']);
    expect(headersOf(refused)).toMatchObject({ 'X-Sluice-Outage-Policy': 'local' });

    expect((await gateway.askFor(free)).overall_code).toBe('OK');
  });
});
