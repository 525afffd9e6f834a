import { acceptsConnections } from '../../support/accepts-connections.js';
import type { Environment } from '../../support/both-limiters.js';
import { untilWaiting } from '../../support/debug-state.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import {
  GATEWAY_SETTINGS,
  type GrpcApp,
  ruleForAll,
  rulesFile,
  startGrpcApp,
  useGrpcApps,
} from '../../support/grpc-app.js';
import { codesOf, failureOf, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { useHealthClients } from '../../support/grpc-health.js';
import { useGrpcServices } from '../../support/grpc-service.js';
import { approve } from '../../support/http-client.js';
import { checkUntilLogged, STORE_BACK, STORE_DOWN } from '../../support/outage.js';
import { quotaOf } from '../../support/quota.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { StoreLimiterStub } from '../../support/store-limiter-stub.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();
const folder = useTemporaryFolder();
const healthOf = useHealthClients();

describe('the longest wait', () => {
  const QUOTA = quotaOf(1500);

  const start = useGrpcServices();

  /** The longest wait of a descriptor under a rule and a gateway's timeout. */
  async function longestWait(
    max_wait_millis: number,
    timeoutMillis?: number,
  ): Promise<number | undefined> {
    const limiter = new StoreLimiterStub();
    const service = await start(limiter, { rules: [ruleForAll({ max_wait_millis })] });
    const call = gatewayOf(service).begin(
      { descriptors: [of('key')] },
      timeoutMillis === undefined ? {} : { timeoutMillis },
    );
    const { request } = await until(() => limiter.asked[0]);
    call.cancel();
    return request.maxWaitMillis;
  }

  test('a descriptor waits at most as long as its rule says', async () => {
    expect(await longestWait(700)).toBe(700);
    expect(await longestWait(700, 60_000)).toBe(700);
  });

  test("a descriptor waits at most nine tenths of its gateway's timeout", async () => {
    const longest = await longestWait(3_600_000, 60_000);

    expect(longest).toBeLessThanOrEqual(54_000);
    expect(longest).toBeGreaterThan(0);
    expect(Number.isInteger(longest)).toBe(true);
  });

  test('a descriptor whose wait is over has the others withdrawn or given back, and no more are asked for', async () => {
    const limiter = new StoreLimiterStub();
    const service = await start(limiter, {
      rules: [{ key_pattern: 'patient-.*', key_pattern_is_regex: true, max_wait_millis: 60_000 }],
    });
    const { answer } = gatewayOf(service).begin({
      descriptors: [of('hasty'), of('patient-1'), of('patient-2'), of('patient-3')],
    });
    await until(() => limiter.asked.length === 3);
    const [first, second, third] = limiter.asked;
    expect(limiter.asked.map(({ request }) => [request.key, request.canWait])).toEqual([
      ['patient-1', true],
      ['patient-2', true],
      ['patient-3', true],
    ]);
    first!.waiter.approveFromQueue(QUOTA);
    second!.waiter.expire(QUOTA);
    const response = await answer;

    expect(response.overall_code).toBe('OVER_LIMIT');
    expect(codesOf(response)).toEqual(['UNKNOWN', 'OK', 'OVER_LIMIT', 'UNKNOWN']);
    expect(limiter.withdrawn).toEqual([third!.waiter.requestId]);
    expect(limiter.released).toEqual([first!.waiter.requestId]);
    expect(limiter.asked).toHaveLength(3);
  });
});

const ONE_HOUR = 3_600_000;

const rulesThatWait = (): Promise<Environment> =>
  rulesFile(folder, ruleForAll({ max_wait_millis: 86_400_000 }));

describe('a service that stops', () => {
  test('turns waiters away when the grace is over, which is not a denial', async () => {
    const app = await start({ ...(await rulesThatWait()) });
    const keys = [uniqueKey(), uniqueKey()];
    const gateway = gatewayOf(app);
    for (const key of keys) await approve(app.url, key);
    const alone = gateway.begin({ descriptors: [of(keys[0]!)] });
    const together = gateway.begin({ descriptors: keys.map((key) => of(key)) });
    await untilWaiting(app.url, keys[0]!, 2);
    await untilWaiting(app.url, keys[1]!, 1);
    await app.stop(0);

    for (const { answer } of [alone, together]) {
      expect(await failureOf(answer)).toEqual(['UNAVAILABLE', 'shutting down']);
    }
    expect(await acceptsConnections(app.grpcPort)).toBe(false);
  });

  test('answers waiters whose turn comes within the grace', async () => {
    const app = await start({ ...(await rulesThatWait()), WINDOW_MILLIS: '500' });
    const gateway = gatewayOf(app);
    const watched = healthOf(app).watch('');
    await watched.tells('SERVING');
    const key = uniqueKey();
    await approve(app.url, key);
    // Three, with one approval in each window: the last has to wait for two windows at least.
    const calls = [1, 2, 3].map(() => gateway.begin({ descriptors: [of(key)] }));
    await Promise.race(calls.map(({ answer }) => answer));
    await app.stop(ONE_HOUR);

    for (const { answer } of calls) {
      expect(await answer).toMatchObject({
        overall_code: 'OK',
        statuses: [{ code: 'OK', limit_remaining: 0 }],
      });
    }
    await watched.tells('NOT_SERVING');
    expect(watched.told).toEqual(['SERVING', 'NOT_SERVING']);
  });
});

describe('a process that stops', () => {
  afterEach(killReplicas);

  async function startProcess(environment: Environment): Promise<{
    replica: ReplicaProcess;
    grpcPort: number;
  }> {
    const replica = await startReplica({
      ...GATEWAY_SETTINGS,
      SHUTDOWN_GRACE_MILLIS: '0',
      ...environment,
    });
    const { grpcPort } = await replica.logged(({ msg }) => msg === 'serving');
    return { replica, grpcPort: Number(grpcPort) };
  }

  test('ends with code 0, although gateways have open connections and calls', async () => {
    const { replica, grpcPort } = await startProcess(await rulesThatWait());
    const gateway = gatewayOf({ grpcPort });
    const key = uniqueKey();
    await gateway.askFor(key);
    const waiting = gateway.begin({ descriptors: [of(key)] });
    const watched = healthOf({ grpcPort }).watch('');
    await watched.tells('SERVING');
    await untilWaiting(replica.url, key, 1);

    expect(await replica.kill('SIGTERM')).toBe(0);
    expect(await failureOf(waiting.answer)).toEqual(['UNAVAILABLE', 'shutting down']);
    await watched.tells('NOT_SERVING');
    expect(watched.told).toEqual(['SERVING', 'NOT_SERVING']);
    expect(replica.log.map(({ msg }) => msg)).toEqual([
      'rules read',
      'serving',
      'stopping',
      'stopped',
    ]);
    expect(replica.stderr).toBe('');
  });

  test('answers calls in flight', async () => {
    const { replica, grpcPort } = await startProcess({
      REDIS_URL: redis.url,
      STORE_TIMEOUT_MILLIS: '60000',
    });
    const gateway = gatewayOf({ grpcPort });
    await gateway.askFor(uniqueKey());
    await redis.client.call('CLIENT', 'PAUSE', '3600000', 'WRITE');
    const { answer } = gateway.begin({ descriptors: [of(uniqueKey()), of(uniqueKey())] });
    await until(async () => /^blocked_clients:[1-9]/m.test(await redis.client.info('clients')));
    replica.signal('SIGTERM');
    await replica.logged(({ msg }) => msg === 'stopping');
    await redis.client.call('CLIENT', 'UNPAUSE');

    expect((await answer).overall_code).toBe('OK');
    expect(await replica.kill('SIGCONT')).toBe(0);
  });
});

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
});
