import { KeyNaming } from '../../../src/redis/key-names.js';
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
    // Nothing may be left to the leases.
    REPLICA_LEASE_MILLIS: '3600000',
    ...environment,
  });
}

/** The ids of the replicas whose waiters are in the queue, in its order. */
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
  test('leaves nothing in Redis when it was alone', async () => {
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
    // What is left expires: the state, the approvals of those who were served, and who was withdrawn.
    const names = await redis.client.keys('*');
    for (const key of keys) {
      expect(names.filter((name) => name.includes(key)).sort()).toEqual([
        `sluice:{${key}}`,
        `sluice:{${key}}:requests`,
        `sluice:{${key}}:requests:1`,
      ]);
    }
  });

  test('takes only its own waiters along, and the others move up', async () => {
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

  test('leaves the ends of the windows to another that has waiters', async () => {
    const [stopping, staying] = await Promise.all([start(), start()]);
    const key = uniqueKey();
    await approve(stopping.url, key);
    begin(stopping.url, 'POST', `/rate/${key}?canWait=true`);
    await untilWaiting(stopping.url, key, 1);
    // Else the other may be the first to volunteer.
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
    // For commands, and to subscribe with; nobody waits for the second before the replica serves.
    await until(async () => (await clients()) === 2);
    await replica.kill('SIGTERM');

    await until(async () => (await clients()) === 0);
  });

  test('answers what is in flight', async () => {
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

  test('ends although Redis can not be reached, and turns those who wait away', async () => {
    const replica = await start({
      REDIS_URL: 'redis://127.0.0.1:1',
      STORE_TIMEOUT_MILLIS: '500',
    });

    expect((await send(replica.url, 'POST', `/rate/${uniqueKey()}?canWait=true`)).status).toBe(503);
    expect(await replica.kill('SIGTERM')).toBe(0);
  });
});
