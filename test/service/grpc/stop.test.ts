import { acceptsConnections } from '../../support/accepts-connections.js';
import { bothLimiters, type Environment } from '../../support/both-limiters.js';
import { untilWaiting } from '../../support/debug-state.js';
import { GATEWAY_SETTINGS, ruleForAll, rulesFile, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, of, useGateways } from '../../support/grpc-gateway.js';
import { useHealthClients } from '../../support/grpc-health.js';
import { approve } from '../../support/http-client.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const ONE_HOUR = 3_600_000;

const redis = useRedis();
const folder = useTemporaryFolder();
const start = useGrpcApps();
const gatewayOf = useGateways();
const healthOf = useHealthClients();

const rulesThatWait = (): Promise<Environment> =>
  rulesFile(folder, ruleForAll({ max_wait_millis: 86_400_000 }));

describe.each(bothLimiters(redis))('a service that stops (%s limiter)', (_name, settings) => {
  test('turns waiters away when the grace is over, which is not a denial', async () => {
    const app = await start({ ...settings(), ...(await rulesThatWait()) });
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
    const app = await start({ ...settings(), ...(await rulesThatWait()), WINDOW_MILLIS: '1000' });
    const gateway = gatewayOf(app);
    const watched = healthOf(app).watch('');
    await watched.tells('SERVING');
    const key = uniqueKey();
    await approve(app.url, key);
    // Three, with one approval in each window: the last has to wait for two windows at least.
    const calls = [1, 2, 3].map(() => gateway.begin({ descriptors: [of(key)] }));
    await Promise.race(calls.map(({ answer }) => answer));
    await app.stop(ONE_HOUR);

    for (const { answer } of calls) expect((await answer).overall_code).toBe('OK');
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
