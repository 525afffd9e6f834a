import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { checkMany, releaseMany } from '../../support/bulk-client.js';
import { debugState } from '../../support/debug-state.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent } from '../../support/extent.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { forgetScripts, textsSent } from '../../support/forget-scripts.js';
import { send } from '../../support/http-client.js';
import { STORE_DOWN } from '../../support/outage.js';
import { scrape } from '../../support/prometheus-text.js';
import { requestRate, waitingCount } from '../../support/rate-client.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { asLimiterUser } from '../../support/redis-user.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

/** Resolves when a replica has no work left over from an outage. */
async function hasCaughtUp({ url }: { readonly url: string }): Promise<void> {
  await until(async () => {
    const undone = (await scrape(url)).valuesOf('ratelimit_store_catch_up_pending');
    return Object.values(undone).every((count) => count === 0);
  });
}

const naming = new KeyNaming('sluice:');
const ONE_HOUR = '3600000';
const IN_A_ROW = 20;
/** For tests that are not about time limits: a busy machine may be slow. */
const PATIENT = { STORE_TIMEOUT_MILLIS: '30000' };

describeWithRedisProgram('a replica', () => {
  let redis: RedisProcess;
  let link: FaultProxy;
  /** Most tests leave it as they found it. Its connections to Redis go through the link. */
  let shared: ReplicaProcess;
  /** What it has logged in earlier tests. */
  let logged: number;
  beforeAll(async () => {
    redis = await startRedisProcess();
    link = await startFaultProxy(redis.port);
    shared = await start({ REDIS_URL: asLimiterUser(link.url), REPLICA_LEASE_MILLIS: '1000' });
  });
  beforeEach(() => {
    logged = shared.log.length;
  });
  afterAll(async () => {
    await killReplicas();
    link.stop();
    await redis.stop();
  });

  const start = (more: Record<string, string> = {}): Promise<ReplicaProcess> =>
    startReplica({
      REDIS_URL: redis.url,
      WINDOW_MILLIS: ONE_HOUR,
      MAX_REQUESTS: '500',
      ...more,
    });

  /** Whether the shared replica has logged this message in this test. */
  const hasLogged = (message: string): boolean =>
    shared.log.slice(logged).some(({ msg }) => msg === message);

  async function answersAgain({ url }: ReplicaProcess): Promise<void> {
    let inARow = 0;
    await until(async () => {
      const { status } = await send(url, 'POST', `/rate/${uniqueKey()}`);
      inARow = status === 200 ? inARow + 1 : 0;
      return inARow === IN_A_ROW;
    });
  }

  const isDown = (): Promise<unknown> => until(() => hasLogged(STORE_DOWN));

  test('sends no check again for which nobody waits any more, when Redis has got the scripts that it had forgotten', async () => {
    const client = redis.connect();
    const key = uniqueKey();
    await answersAgain(shared);
    // A waiter whose disconnect gives Redis the script that withdraws.
    const other = uniqueKey();
    await requestRate(shared.url, other, 'maxRequests=1').answer;
    const waiting = requestRate(shared.url, other, 'canWait=true');
    await until(async () => (await waitingCount(shared.url, other)) === 1);
    await forgetScripts(redis);
    waiting.disconnect();
    await until(async () => (await waitingCount(shared.url, other)) === 0);
    await hasCaughtUp(shared);
    // The check reaches Redis in time, and again with its script when it is too late.
    for (const direction of [link.toServer, link.toClient]) direction.delay(200);
    // All in one call: after several failed calls, withdrawals would wait until Redis is known to be up again.
    const elements = Array.from({ length: 12 }, () => ({ key, holdMillis: 86_400_000 }));
    const statuses = (await checkMany(shared.url, elements)).map(({ status }) => status);
    expect(statuses).toEqual(elements.map(() => 503));
    for (const direction of [link.toServer, link.toClient]) direction.pass();

    await answersAgain(shared);
    await hasCaughtUp(shared);
    const { requestId } = await requestRate(shared.url, key, 'holdMillis=1000').answer;
    expect(await client.zrange(naming.namesOf(key).lapses, '0', '-1')).toEqual([requestId]);
    client.disconnect();
  });

  test('keeps a connection with late replies', async () => {
    await answersAgain(shared);
    const { accepted } = link;

    link.toClient.delay(600);
    const checking = until(async () => {
      await send(shared.url, 'POST', `/rate/${uniqueKey()}`);
      // Each probe of a silent connection opens another one.
      return link.accepted >= accepted + 2;
    });
    await isDown();
    await checking;
    link.toClient.pass();

    await answersAgain(shared);
    await hasCaughtUp(shared);
    expect(hasLogged('redis connection lost')).toBe(false);
  });

  test('leaves a connection without replies if another one is answered', async () => {
    await answersAgain(shared);
    link.toServer.lose();
    link.toClient.lose();
    await answersAgain(shared);
    expect(hasLogged('redis connection lost')).toBe(true);
  });

  describe('with patience', () => {
    // Of its own, since the shared replica sends scripts as well.
    let redis: RedisProcess;
    let replica: ReplicaProcess;
    beforeAll(async () => {
      redis = await startRedisProcess();
      replica = await start({ ...PATIENT, REDIS_URL: redis.url });
    });
    afterAll(async () => {
      await replica.kill('SIGKILL');
      await redis.stop();
    });

    test('sends a script once for 1000 releases if Redis has forgotten its scripts', async () => {
      const key = uniqueKey();
      const checks = await checkMany(
        replica.url,
        Array.from({ length: 1000 }, () => ({ key, maxRequests: 1000 })),
      );
      await forgetScripts(redis);
      await redis.command('CONFIG', 'RESETSTAT');
      const released = await releaseMany(
        replica.url,
        checks.map((check) => ({ key, request_id: 'request_id' in check ? check.request_id : '' })),
      );
      expect(new Set(released.map(({ status }) => status))).toEqual(new Set([200]));
      expect((await textsSent(redis)).texts).toBe(1);
      expect((await debugState(replica.url, key)).NumApprovedThisWindow).toBe(0);
    });

    test('decides the checks of one key in their order, while Redis forgets its scripts', async () => {
      let isOver = false;
      const forgetting = until(async () => {
        await forgetScripts(redis);
        return isOver;
      });
      for (let round = 0; round < extent(8, 30); round += 1) {
        const key = uniqueKey();
        const results = await checkMany(
          replica.url,
          Array.from({ length: 1000 }, () => ({ key })),
        );
        const statuses = results.map(({ status }) => status);
        expect(statuses).toEqual(Array.from({ length: 1000 }, (_, i) => (i < 500 ? 200 : 429)));
      }
      isOver = true;
      await forgetting;
    });
  });
});
