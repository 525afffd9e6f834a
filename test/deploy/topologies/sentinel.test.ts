import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { startFaultProxy } from '../../support/fault-proxy.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { waitInTurn } from '../../support/rate-client.js';
import { type RedisSentinel, startRedisSentinel } from '../../support/redis-sentinel.js';
import { asLimiterUser, LIMITER_USER } from '../../support/redis-user.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

/** The passwords of the default users, which servers and sentinels use among themselves. */
const CREDENTIALS = { password: 'of-redis', sentinelPassword: 'of-the-sentinels' };

describeWithRedisProgram('with Sentinels and passwords', () => {
  let setup: RedisSentinel;
  let first: ReplicaProcess;
  let second: ReplicaProcess;

  beforeAll(async () => {
    setup = await startRedisSentinel(CREDENTIALS);
    const environment = {
      ...setup.settings,
      WINDOW_MILLIS: '3600000',
      // Long enough for a busy machine, and for a failover.
      STORE_TIMEOUT_MILLIS: '10000',
    };
    [first, second] = await Promise.all([startReplica(environment), startReplica(environment)]);
  });
  afterAll(async () => {
    await killReplicas();
    await setup.stop();
  });

  /** A key with an approval and two waiters, in all servers: a failover may lose what is only in one. */
  async function twoWaiting() {
    const key = uniqueKey();
    const approved = await approve(first.url, key, '?maxRequests=1');
    const waiters = await waitInTurn([first, second], key, 2);
    await setup.replicated();
    return { key, approved, waiters };
  }

  /** Releases one approval after the other, and expects each waiter to be served in its turn. */
  async function serveInTurn({ key, approved, waiters }: Awaited<ReturnType<typeof twoWaiting>>) {
    let requestId = approved;
    for (const { answer } of waiters) {
      let isServed = false;
      void answer.finally(() => (isServed = true));
      // A release that got a 503 may still have run.
      await until(async () => {
        const { status } = await send(second.url, 'DELETE', `${ratePath(key)}/${requestId}`);
        return status === 200 || isServed;
      });
      const served = await answer;
      expect(served.status).toBe(200);
      requestId = served.requestId!;
    }
  }

  test('the primary that the Sentinels name is used, and the password is not logged', async () => {
    await serveInTurn(await twoWaiting());
    const text = JSON.stringify([first.log, second.log]);
    expect(text).not.toContain(LIMITER_USER.password);
  });

  test('a failover keeps the waiters in their order if the primary hangs and comes back as a replica', async () => {
    const waiting = await twoWaiting();
    const before = await setup.primary();
    before.signal('SIGSTOP');
    const after = await setup.primary();
    expect(after).not.toBe(before);
    before.signal('SIGCONT');
    await serveInTurn(waiting);
  });

  test('a Sentinel that does not answer a new subscription does no harm', async () => {
    const sentinel = setup.sentinels[0]!;
    const proxy = await startFaultProxy(sentinel.port);
    const listeners = async (): Promise<number> =>
      String(await sentinel.command('CLIENT', 'LIST', 'TYPE', 'pubsub')).match(/ sub=1 /g)
        ?.length ?? 0;
    const others = await listeners();
    try {
      const replica = await startReplica({
        ...setup.settings,
        REDIS_URL: asLimiterUser(proxy.url),
        STORE_TIMEOUT_MILLIS: '300',
      });
      await until(async () => (await send(replica.url, 'GET', '/readyz')).status === 200);
      await until(async () => (await listeners()) > others);
      proxy.toClient.delayFrom('subscribe\r\n', 60_000);
      const before = proxy.accepted;
      proxy.cut();
      await until(() => replica.stderr !== '' || proxy.accepted >= before + 3);
      expect(replica.stderr).toBe('');
      const isApproved = async () =>
        (await send(replica.url, 'POST', `/rate/${uniqueKey()}`)).status === 200;
      await until(isApproved);

      proxy.toClient.delayFrom('subscribe\r\n', 0);
      proxy.cut();
      await setup.failover();
      await until(isApproved);
    } finally {
      proxy.stop();
    }
  });
});
