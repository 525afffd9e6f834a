import { once } from 'node:events';

import { jest } from '@jest/globals';
import type { Cluster, Redis } from 'ioredis';

import { connect, waitUntilReady } from '../../../src/redis/connections/connect.js';
import type { ConnectionSettings } from '../../../src/redis/connections/connection-settings.js';
import type { Connections } from '../../../src/redis/connections/connections.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { recordLog } from '../../support/recorded-log.js';
import { type RedisCluster, startRedisCluster } from '../../support/redis-cluster.js';
import { SubscriptionRecorder } from '../../support/subscription-recorder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const { logger } = recordLog('silent');
const naming = new KeyNaming('sluice:');

function settingsFor(mode: ConnectionSettings['mode'], url: string): ConnectionSettings {
  return { mode, urls: url.split(','), database: 0, timeoutMillis: 10_000, name: uniqueKey() };
}

async function connected(settings: ConnectionSettings): Promise<Connections> {
  const connections = connect(settings, logger);
  await waitUntilReady(connections, settings.timeoutMillis);
  return connections;
}

test('a renewed connection to the primary is replaced at once', async () => {
  const { host, port } = redis.client.options;
  const connections = await connected(settingsFor('standalone', `redis://${host}:${port}`));
  const commands = connections.commands as Redis;
  let ends = 0;
  commands.on('end', () => (ends += 1));
  connections.renew(connections.shardOf(naming.namesOf('key').state));
  await once(commands, 'ready');
  expect(ends).toBe(0);
  expect(await commands.ping()).toBe('PONG');
  await connections.close();
});

test('a connection to the primary that has ended is made again', async () => {
  const connections = await connected(settingsFor('standalone', redis.url));
  const commands = connections.commands as Redis;
  commands.disconnect();
  await once(commands, 'end');
  await once(commands, 'ready');
  await connections.close();
});

test.each(['standalone', 'cluster'] as const)(
  'a command fails at once while nothing is connected, %s',
  async (mode) => {
    const connections = connect(settingsFor(mode, 'redis://127.0.0.1:1'), logger);
    await expect(connections.commands.ping()).rejects.toThrow('enableOfflineQueue');
    await connections.close();
  },
);

describeWithRedisProgram('in a cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster({ primaries: 2, replicasPerPrimary: 0 });
  });
  afterAll(() => cluster.stop());

  /** The look-ups but the regular ones, which call back. */
  const askedFor = (lookedUp: ReturnType<typeof spyOnLookUps>): number =>
    lookedUp.mock.calls.filter(([callback]) => callback === undefined).length;

  const spyOnLookUps = ({ commands }: Connections) =>
    jest.spyOn(commands as Cluster, 'refreshSlotsCache');

  test('the renewal of a connection looks the topology up, since the node may be gone', async () => {
    const connections = await connected(settingsFor('cluster', cluster.settings.REDIS_URL));
    const lookedUp = spyOnLookUps(connections);
    const shard = connections.shardOf(naming.namesOf('key').state);
    const closed = once(connections.nodeAt(shard)!, 'close');
    connections.renew(shard);
    expect(askedFor(lookedUp)).toBe(1);
    await closed;
    // A node is connected when it is asked.
    await until(() => connections.nodeAt(shard)?.status === 'wait');
    expect(await (connections.commands as Cluster).exists(naming.namesOf('key').state)).toBe(0);
    await connections.close();
  });

  test('a subscription whose slot has moved leads to a look-up, after which it is made again', async () => {
    const connections = await connected(settingsFor('cluster', cluster.settings.REDIS_URL));
    const { subscriber } = connections;
    const recorder = new SubscriptionRecorder();
    subscriber.listen(recorder);
    const channel = naming.namesOf(uniqueKey()).wakeChannel;
    subscriber.subscribe(channel);
    await recorder.untilSubscribed(channel);
    const lookedUp = spyOnLookUps(connections);
    const lookUp = lookedUp.getMockImplementation()!;
    // A regular one between the two could find that the slot has moved.
    lookedUp.mockImplementation((callback) => {
      if (callback) callback();
      else lookUp.call(connections.commands as Cluster);
    });

    const before = connections.shardOf(channel);
    const source = await cluster.primaryOf(channel);
    const target = (await cluster.primaries()).find(({ id }) => id !== source.id)!;
    await cluster.migrateSlot(await cluster.slotOf(channel), target);
    await recorder.untilSubscribed(channel, 2);
    expect(connections.shardOf(channel)).not.toBe(before);
    expect(askedFor(lookedUp)).toBe(1);
    await connections.close();
  });
});
