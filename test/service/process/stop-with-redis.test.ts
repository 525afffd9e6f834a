import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { storedQueue } from '../../support/stored-queue.js';
import { untilWaiting } from '../../support/debug-state.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
afterEach(killReplicas);

function start(environment: Readonly<Record<string, string>> = {}): Promise<ReplicaProcess> {
  return startReplica({
    REDIS_URL: redis.url,
    WINDOW_MILLIS: '3600000',
    MAX_REQUESTS: '1',
    SHUTDOWN_GRACE_MILLIS: '0',
    STORE_TIMEOUT_MILLIS: '60000',
    // So long that no lease ends during the test.
    REPLICA_LEASE_MILLIS: '3600000',
    ...environment,
  });
}

/** The replica id of each waiter in the queue, in the order of the queue. */
async function queueOf(key: string): Promise<string[]> {
  const { waiting } = await storedQueue(redis.client, new KeyNaming('sluice:').namesOf(key));
  return waiting.map(([waiter]) => waiter.split('@')[1]!);
}

async function leasesOf(key: string): Promise<string[]> {
  return redis.client.hkeys(`sluice:{${key}}:replicas`);
}

async function leaderOf(key: string): Promise<string | null> {
  return redis.client.get(`mutex:sluice:{${key}}:leader`);
}

describe('a replica that stops', () => {
  test('leaves no waiters, leases or leader in Redis if it is the only one', async () => {
    const replica = await start();
    const keys = [uniqueKey(), uniqueKey()];
    const waiting = [];
    for (const key of keys) {
      await approve(replica.url, key);
      waiting.push(begin(replica.url, 'POST', `/rate/${key}?canWait=true`));
      await untilWaiting(replica.url, key, 1);
      await until(() => leaderOf(key).then((leader) => leader !== null));
    }
    expect(await replica.kill('SIGTERM')).toBe(0);

    for (const { answer } of waiting) expect((await answer).status).toBe(503);
    for (const key of keys) {
      expect(await queueOf(key)).toEqual([]);
      expect(await leasesOf(key)).toEqual([]);
      expect(await leaderOf(key)).toBeNull();
    }
    // The names that are left expire: the state, the approvals, and the withdrawn waiters.
    const names = await redis.client.keys('*');
    for (const key of keys) {
      expect(names.filter((name) => name.includes(key)).sort()).toEqual([
        `sluice:{${key}}`,
        `sluice:{${key}}:requests`,
        `sluice:{${key}}:requests:1`,
      ]);
    }
  });

  test('removes only its own waiters, and the others move up', async () => {
    const [stopping, staying] = await Promise.all([start(), start()]);
    const key = uniqueKey();
    const holder = await approve(stopping.url, key);
    const order = [stopping, staying, stopping, staying];
    const waiting = [];
    for (const [i, { url }] of order.entries()) {
      waiting.push(begin(url, 'POST', `/rate/${key}?canWait=true`));
      await untilWaiting(url, key, i + 1);
    }
    const [leavingId, stayingId] = await queueOf(key);
    expect(await queueOf(key)).toEqual([leavingId, stayingId, leavingId, stayingId]);
    expect(await stopping.kill('SIGTERM')).toBe(0);

    expect((await waiting[0]!.answer).status).toBe(503);
    expect((await waiting[2]!.answer).status).toBe(503);
    expect(await queueOf(key)).toEqual([stayingId, stayingId]);
    expect(await leasesOf(key)).toEqual([stayingId]);

    expect((await send(staying.url, 'DELETE', `${ratePath(key)}/${holder}`)).status).toBe(200);
    expect((await waiting[1]!.answer).status).toBe(200);
    expect(await queueOf(key)).toEqual([stayingId]);
    waiting[3]!.disconnect();
  });

  test("leaves the leader's role to another replica with waiters", async () => {
    const [stopping, staying] = await Promise.all([start(), start()]);
    const key = uniqueKey();
    await approve(stopping.url, key);
    begin(stopping.url, 'POST', `/rate/${key}?canWait=true`);
    await untilWaiting(stopping.url, key, 1);
    // Otherwise the other replica may be the first to volunteer.
    await until(async () => (await leaderOf(key)) !== null);
    const waiting = begin(staying.url, 'POST', `/rate/${key}?canWait=true`);
    await untilWaiting(staying.url, key, 2);
    const [leavingId, stayingId] = await queueOf(key);
    await until(async () => (await leaderOf(key))?.startsWith(leavingId!));
    expect(await stopping.kill('SIGTERM')).toBe(0);

    await until(async () => (await leaderOf(key))?.startsWith(stayingId!));
    waiting.disconnect();
  });

  test('closes its connections to Redis', async () => {
    const replica = await start();
    await approve(replica.url, uniqueKey());
    const clients = async (): Promise<number> =>
      String(await redis.client.client('LIST')).match(/ name=sluice:/g)?.length ?? 0;
    // One for commands and one to subscribe with. The replica serves before the second is open.
    await until(async () => (await clients()) === 2);
    await replica.kill('SIGTERM');

    await until(async () => (await clients()) === 0);
  });

  test('answers requests in flight', async () => {
    const replica = await start({ SHUTDOWN_GRACE_MILLIS: '3600000' });
    await approve(replica.url, uniqueKey());
    await redis.client.call('CLIENT', 'PAUSE', '3600000', 'WRITE');
    const key = uniqueKey();
    const inFlight = begin(replica.url, 'POST', `/rate/${key}`);
    await until(async () => /^blocked_clients:1\r$/m.test(await redis.client.info('clients')));
    replica.signal('SIGTERM');
    await replica.logged(({ msg }) => msg === 'stopping');
    await redis.client.call('CLIENT', 'UNPAUSE');

    expect((await inFlight.answer).status).toBe(200);
    expect(await replica.kill('SIGCONT')).toBe(0);
  });

  test('ends even if Redis can not be reached', async () => {
    const replica = await start({
      REDIS_URL: 'redis://127.0.0.1:1',
      STORE_TIMEOUT_MILLIS: '500',
    });

    expect((await send(replica.url, 'POST', `/rate/${uniqueKey()}?canWait=true`)).status).toBe(503);
    expect(await replica.kill('SIGTERM')).toBe(0);
  });
});
