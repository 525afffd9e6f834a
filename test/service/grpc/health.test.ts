import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, useGateways } from '../../support/grpc-gateway.js';
import { useHealthClients } from '../../support/grpc-health.js';
import { startRedisProcess } from '../../support/redis-process.js';
import { uniqueKey } from '../../support/unique-key.js';

const LIMITS = 'envoy.service.ratelimit.v3.RateLimitService';

const start = useGrpcApps();
const healthOf = useHealthClients();
const gatewayOf = useGateways();

describe('the health service', () => {
  test.each(['', LIMITS])('says that %j serves', async (service) => {
    expect(await healthOf(await start()).check(service)).toBe('SERVING');
  });

  test('rejects an unknown service', async () => {
    expect(await failureOf(healthOf(await start()).check('another'))).toEqual([
      'NOT_FOUND',
      'Health status unknown for service another',
    ]);
  });

  test('lists both', async () => {
    expect(await healthOf(await start()).list()).toEqual({ '': 'SERVING', [LIMITS]: 'SERVING' });
  });

  test('asks for no token', async () => {
    const caller = { name: 'one', token: 'token-of-one-caller', scopes: ['check'] };
    const app = await start({}, { tokens: [caller] });

    expect((await failureOf(gatewayOf(app).askFor('key')))[0]).toBe('UNAUTHENTICATED');
    expect(await healthOf(app).check(LIMITS)).toBe('SERVING');
  });

  test('tells watchers at once when the service drains, while calls are still decided', async () => {
    const app = await start({ SHUTDOWN_DELAY_MILLIS: '3600000' });
    const health = healthOf(app);
    const watched = ['', LIMITS].map((service) => health.watch(service));
    await Promise.all(watched.map((each) => each.tells('SERVING')));
    const hurry = new AbortController();
    const stopped = app.stop(0, hurry.signal);
    await Promise.all(watched.map((each) => each.tells('NOT_SERVING')));

    expect(watched.map(({ told }) => told)).toEqual([
      ['SERVING', 'NOT_SERVING'],
      ['SERVING', 'NOT_SERVING'],
    ]);
    expect(await health.check(LIMITS)).toBe('NOT_SERVING');
    expect((await gatewayOf(app).askFor(uniqueKey())).overall_code).toBe('OK');
    hurry.abort();
    await stopped;
  });

  test('goes on telling other watchers when one has left', async () => {
    const app = await start({ SHUTDOWN_DELAY_MILLIS: '3600000' });
    const health = healthOf(app);
    const [leaves, stays] = [health.watch(''), health.watch('')];
    await Promise.all([leaves.tells('SERVING'), stays.tells('SERVING')]);
    leaves.cancel();
    const hurry = new AbortController();
    const stopped = app.stop(0, hurry.signal);
    await stays.tells('NOT_SERVING');

    expect(leaves.told).toEqual(['SERVING']);
    hurry.abort();
    await stopped;
  });

  test('tells a watcher that its service is unknown, and nothing more', async () => {
    const app = await start();
    const health = healthOf(app);
    const watched = health.watch('another');
    await watched.tells('SERVICE_UNKNOWN');
    watched.cancel();

    expect(await failureOf(health.check('another'))).toContain('NOT_FOUND');
  });
});

describeWithRedisProgram('while Redis is down', () => {
  test('the health service says NOT_SERVING until Redis is back', async () => {
    const redis = await startRedisProcess();
    const app = await start({ REDIS_URL: redis.url, STORE_TIMEOUT_MILLIS: '1000' });
    const watched = healthOf(app).watch(LIMITS);
    await watched.tells('SERVING');
    await redis.kill();
    await watched.tells('NOT_SERVING');
    await redis.restart({ withData: false });
    await watched.tells('SERVING');

    expect(watched.told).toEqual(['SERVING', 'NOT_SERVING', 'SERVING']);
    await app.stop(0);
    await redis.stop();
  });
});
