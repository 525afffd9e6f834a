import { Redis } from 'ioredis';
import type { Logger } from 'pino';

import { clientOptions } from '../../../src/redis/connections/connection-settings.js';
import { ShardedSubscriber } from '../../../src/redis/connections/cluster-connections.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { killSubscriberConnections } from '../../support/kill-connections.js';
import { recordLog } from '../../support/recorded-log.js';
import { startFaultProxy } from '../../support/fault-proxy.js';
import { startRedisProcess } from '../../support/redis-process.js';
import { SubscriptionRecorder } from '../../support/subscription-recorder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

/** Two independent servers stand for the shards of a cluster. */
const a = useRedis();
const b = useRedis();

const NAME = 'sharded-subscriber';

/** The test's topology of the cluster: the shard of each channel, and the unknown shards. */
let shards: Map<string, string>;
let unknownShards: Set<string>;
let refreshes: number;
let recorder: SubscriptionRecorder;
let log: ReturnType<typeof recordLog>;
let subscriber: ShardedSubscriber;
let onA: string;
let onB: string;
beforeEach(() => {
  [onA, onB] = [uniqueKey(), uniqueKey()];
  shards = new Map([
    [onA, 'a'],
    [onB, 'b'],
  ]);
  unknownShards = new Set();
  refreshes = 0;
  recorder = new SubscriptionRecorder();
  log = recordLog('debug');
  subscriber = createSubscriber(
    {
      shardOf: (channel) => shards.get(channel) ?? 'a',
      nodeAt: (shard) => (unknownShards.has(shard) ? undefined : nodeAt(shard)),
      refresh: () => (refreshes += 1),
    },
    10_000,
    log.logger,
  );
});
afterEach(async () => {
  subscriber.close();
  await untilConnections('a', 0);
  await untilConnections('b', 0);
});

function createSubscriber(
  topology: ConstructorParameters<typeof ShardedSubscriber>[0],
  timeoutMillis: number,
  logger: Logger,
): ShardedSubscriber {
  const options = clientOptions({
    mode: 'cluster',
    urls: [],
    database: 0,
    timeoutMillis,
    name: NAME,
  });
  const created = new ShardedSubscriber(
    topology,
    { ...options, autoResubscribe: false },
    timeoutMillis,
    logger,
  );
  created.listen(recorder);
  return created;
}

const nodeAt = (shard: string): Redis => (shard === 'a' ? a : b).client;

async function subscribersOf(channel: string): Promise<{ a: unknown; b: unknown }> {
  const [[, atA], [, atB]] = (await Promise.all(
    ['a', 'b'].map((shard) => nodeAt(shard).call('PUBSUB', 'SHARDNUMSUB', channel)),
  )) as [[string, number], [string, number]];
  return { a: atA, b: atB };
}

/** Resolves when the subscriber has `count` connections to the shard. */
async function untilConnections(shard: string, count: number): Promise<void> {
  await until(async () => {
    const list = (await nodeAt(shard).client('LIST')) as string;
    return list.split('\n').filter((line) => line.includes(`name=${NAME} `)).length === count;
  });
}

async function subscribe(...channels: string[]): Promise<void> {
  for (const channel of channels) subscriber.subscribe(channel);
  for (const channel of channels) await recorder.untilSubscribed(channel);
}

/** Resolves when the shard has answered all that was sent to it before. */
async function caughtUp(shard: string): Promise<void> {
  const marker = uniqueKey();
  shards.set(marker, shard);
  await subscribe(marker);
  subscriber.unsubscribe(marker);
}

async function expectMessage(shard: string, channel: string): Promise<void> {
  const message = uniqueKey();
  await nodeAt(shard).spublish(channel, message);
  await recorder.untilMessage(message);
  expect(recorder.messages.filter(([, text]) => text === message)).toEqual([[channel, message]]);
}

describe('a channel', () => {
  test('is subscribed only on its shard', async () => {
    await subscribe(onA, onB);
    expect([await subscribersOf(onA), await subscribersOf(onB)]).toEqual([
      { a: 1, b: 0 },
      { a: 0, b: 1 },
    ]);
    await expectMessage('a', onA);
    await expectMessage('b', onB);
  });

  test('shares the connection to its shard with the other channels there', async () => {
    const another = uniqueKey();
    await subscribe(onA, another);
    await untilConnections('a', 1);
    await untilConnections('b', 0);
    expect(await subscribersOf(another)).toEqual({ a: 1, b: 0 });
  });

  test('with an unknown shard waits until the shard is known', async () => {
    unknownShards.add('b');
    subscriber.subscribe(onB);
    await subscribe(onA);
    subscriber.assign();
    expect(recorder.times(onB)).toBe(0);
    unknownShards.clear();
    subscriber.assign();
    await recorder.untilSubscribed(onB);
    await expectMessage('b', onB);
  });

  test('that is unsubscribed gets no more messages', async () => {
    const staying = uniqueKey();
    await subscribe(onA, staying);
    subscriber.unsubscribe(onA);
    await until(async () => (await subscribersOf(onA)).a === 0);
    await expectMessage('a', staying);
  });

  test('that is unsubscribed before there is a connection is not subscribed', async () => {
    subscriber.subscribe(onA);
    subscriber.unsubscribe(onA);
    await caughtUp('a');
    expect(recorder.times(onA)).toBe(0);
    expect(await subscribersOf(onA)).toEqual({ a: 0, b: 0 });
  });

  test('that is unsubscribed while it is being subscribed is not reported', async () => {
    await caughtUp('a');
    subscriber.subscribe(onA);
    subscriber.unsubscribe(onA);
    await caughtUp('a');
    expect(recorder.times(onA)).toBe(0);
    expect(await subscribersOf(onA)).toEqual({ a: 0, b: 0 });
  });

  test('that is subscribed again at once stays subscribed', async () => {
    await subscribe(onA);
    subscriber.unsubscribe(onA);
    subscriber.subscribe(onA);
    await recorder.untilSubscribed(onA, 2);
    await expectMessage('a', onA);
  });

  test('that its shard has refused is subscribed when it is placed again', async () => {
    const allowed = uniqueKey();
    await subscribe(allowed);
    await a.client.acl('SETUSER', 'default', 'resetchannels', `&${allowed}`);
    subscriber.subscribe(onA);
    await until(async () => String(await a.client.acl('LOG')).includes(onA));
    await a.client.acl('SETUSER', 'default', 'allchannels');
    await a.client.acl('LOG', 'RESET');
    await caughtUp('a');
    expect(recorder.times(onA)).toBe(0);
    expect(log.messages).toContain('subscribe failed');
    subscriber.assign();
    await caughtUp('a');
    expect(recorder.times(onA)).toBe(1);
    await expectMessage('a', onA);
  });
});

describe('when channels are placed again', () => {
  test('a moved channel is subscribed on its new shard, and reported', async () => {
    await subscribe(onA, onB);
    shards.set(onA, 'b');
    subscriber.assign();
    await recorder.untilSubscribed(onA, 2);
    await until(async () => (await subscribersOf(onA)).a === 0);
    expect(await subscribersOf(onA)).toEqual({ a: 0, b: 1 });
    await expectMessage('b', onA);
  });

  test('a channel that has not moved is left alone', async () => {
    await subscribe(onA, onB);
    subscriber.assign();
    await caughtUp('a');
    await caughtUp('b');
    expect([recorder.times(onA), recorder.times(onB)]).toEqual([1, 1]);
  });

  test('a channel stays on its old shard until its new shard is known', async () => {
    await subscribe(onA);
    shards.set(onA, 'b');
    unknownShards.add('b');
    subscriber.assign();
    await caughtUp('a');
    expect(await subscribersOf(onA)).toEqual({ a: 1, b: 0 });
    unknownShards.clear();
    subscriber.assign();
    await recorder.untilSubscribed(onA, 2);
    await until(async () => (await subscribersOf(onA)).a === 0);
  });

  test('connections without channels are closed', async () => {
    await subscribe(onA, onB);
    shards.set(onA, 'b');
    subscriber.assign();
    await untilConnections('a', 0);
    await recorder.untilSubscribed(onA, 2);
    subscriber.unsubscribe(onA);
    subscriber.unsubscribe(onB);
    subscriber.assign();
    await untilConnections('b', 0);
    expect(refreshes).toBe(0);
    await subscribe(onB);
    await untilConnections('b', 1);
  });
});

describe('when a connection is cut', () => {
  test('its channels are subscribed again and reported, and no others', async () => {
    const another = uniqueKey();
    await subscribe(onA, another, onB);
    for (const times of [2, 3]) {
      expect(await killSubscriberConnections(a.client)).toBe(1);
      await recorder.untilSubscribed(onA, times);
      await recorder.untilSubscribed(another, times);
      await expectMessage('a', onA);
    }
    expect(recorder.subscribed).toHaveLength(7);
    expect(recorder.times(onB)).toBe(1);
  });

  test('the topology is looked up, since its node may be gone, and a channel that moves is subscribed', async () => {
    await subscribe(onA, onB);
    await killSubscriberConnections(a.client);
    await until(() => refreshes > 0);
    shards.set(onA, 'b');
    subscriber.assign();
    await recorder.untilSubscribed(onA, 2);
    await expectMessage('b', onA);
    await untilConnections('a', 0);
  });
});

describe('when the subscriber is closed', () => {
  test('no more connections are made', async () => {
    const received = async (): Promise<number> =>
      Number(/total_connections_received:(\d+)/.exec(await a.client.info('stats'))![1]);
    subscriber.close();
    const before = await received();
    subscriber.subscribe(onA);
    subscriber.assign();
    // Comes after any connection that the subscriber would have made.
    const last = a.client.duplicate();
    await last.ping();
    last.disconnect();
    expect(await received()).toBe(before + 1);
  });
});

describeWithRedisProgram('a dead connection', () => {
  test('is replaced, and its channels are subscribed on another', async () => {
    const server = await startRedisProcess();
    const proxy = await startFaultProxy(server.port);
    const node = new Redis(proxy.url, { lazyConnect: true });
    const ownLog = recordLog();
    const topology = { shardOf: () => 'only', nodeAt: () => node, refresh: () => undefined };
    const ours = createSubscriber(topology, 1000, ownLog.logger);
    ours.subscribe(onA);
    await recorder.untilSubscribed(onA);
    proxy.toServer.lose();
    proxy.toClient.lose();
    await until(() => ownLog.messages.includes('subscriber does not answer; reconnecting'));
    await recorder.untilSubscribed(onA, 2);

    await server.command('SPUBLISH', onA, 'message');
    await recorder.untilMessage('message');
    ours.close();
    node.disconnect();
    proxy.stop();
  });
});
