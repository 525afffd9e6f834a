import { EventEmitter } from 'node:events';

import { jest } from '@jest/globals';
import type { Redis } from 'ioredis';

import { ConnectionSubscriber } from '../../../src/redis/connections/connection-subscriber.js';
import type { Connections } from '../../../src/redis/connections/connections.js';
import { connectToPrimary } from '../../../src/redis/connections/primary-connections.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { killSubscriberConnections } from '../../support/kill-connections.js';
import { recordLog } from '../../support/recorded-log.js';
import { asLimiterUser } from '../../support/redis-user.js';
import { startFaultProxy } from '../../support/fault-proxy.js';
import { startRedisProcess } from '../../support/redis-process.js';
import { SubscriptionRecorder } from '../../support/subscription-recorder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

let connections: Connections;
let recorder: SubscriptionRecorder;
let channel: string;
let other: string;
beforeEach(() => {
  recorder = new SubscriptionRecorder();
  connections = connectTo(redis.url);
  [channel, other] = [newChannel(), newChannel()];
});
afterEach(() => connections.close());

/** A channel with a name that a service may use. */
function newChannel(): string {
  return new KeyNaming('sluice:').namesOf(uniqueKey()).wakeChannel;
}

function connectTo(url: string, { logger } = recordLog(), timeoutMillis = 10_000): Connections {
  const connected = connectToPrimary(
    { mode: 'standalone', urls: [url], database: 0, timeoutMillis, name: 'test' },
    logger,
  );
  connected.subscriber.listen(recorder);
  return connected;
}

async function subscribersOf(name: string): Promise<unknown> {
  const [, count] = (await redis.client.pubsub('NUMSUB', name)) as [string, number];
  return count;
}

async function subscribe(...channels: string[]): Promise<void> {
  for (const name of channels) connections.subscriber.subscribe(name);
  for (const name of channels) await recorder.untilSubscribed(name);
}

test('an unsubscription that fails is logged', async () => {
  const log = recordLog('debug');
  const client = Object.assign(new EventEmitter(), {
    status: 'ready',
    unsubscribe: () => Promise.reject(new Error('Connection is closed.')),
  });
  const subscriber = new ConnectionSubscriber(client as unknown as Redis, 1000, log.logger);
  subscriber.unsubscribe('channel');
  await until(() => log.lines.length > 0);
  subscriber.close();
  expect(log.lines).toMatchObject([{ msg: 'unsubscribe failed', channel: 'channel' }]);
});

test('a closed subscriber pings no more', () => {
  jest.useFakeTimers();
  const client = Object.assign(new EventEmitter(), { status: 'ready' });
  const { logger } = recordLog();
  const subscriber = new ConnectionSubscriber(client as unknown as Redis, 1000, logger);
  expect(jest.getTimerCount()).toBe(1);
  subscriber.close();
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

test('messages arrive from the moment when the subscription is reported', async () => {
  await subscribe(channel, other);
  await redis.client.publish(channel, 'first');
  await redis.client.publish(other, 'second');
  await recorder.untilMessage('second');
  expect(recorder.messages).toEqual([
    [channel, 'first'],
    [other, 'second'],
  ]);
  expect(recorder.subscribed).toEqual([channel, other]);
});

test('all channels are subscribed and reported again after the connection was cut', async () => {
  await subscribe(channel, other);
  for (const times of [2, 3]) {
    expect(await killSubscriberConnections(redis.client)).toBe(1);
    await recorder.untilSubscribed(channel, times);
    await recorder.untilSubscribed(other, times);
    await redis.client.publish(channel, `after cut ${times}`);
    await recorder.untilMessage(`after cut ${times}`);
  }
  expect(recorder.subscribed).toHaveLength(6);
});

test('a channel stays unsubscribed after reconnections', async () => {
  await subscribe(channel, other);
  connections.subscriber.unsubscribe(channel);
  await until(async () => (await subscribersOf(channel)) === 0);
  await killSubscriberConnections(redis.client);
  await recorder.untilSubscribed(other, 2);

  expect(await subscribersOf(channel)).toBe(0);
  expect(recorder.times(channel)).toBe(1);
});

test('a channel that is unsubscribed while it is being subscribed is not reported', async () => {
  await subscribe(other);
  connections.subscriber.subscribe(channel);
  connections.subscriber.unsubscribe(channel);
  await subscribe(newChannel());

  expect(recorder.times(channel)).toBe(0);
  expect(await subscribersOf(channel)).toBe(0);
});

test('a channel that is subscribed without a connection is subscribed on the next', async () => {
  await subscribe(channel);
  const cut = until(() => connections.commands.status !== 'ready' || undefined);
  await redis.client.client('KILL', 'TYPE', 'PUBSUB');
  await redis.client.call('CLIENT', 'KILL', 'TYPE', 'NORMAL', 'SKIPME', 'YES');
  await cut;
  connections.subscriber.unsubscribe(channel);
  connections.subscriber.subscribe(other);
  await recorder.untilSubscribed(other);

  expect(await subscribersOf(other)).toBe(1);
  expect(await subscribersOf(channel)).toBe(0);
});

test('a connection that answers is kept', async () => {
  await connections.close();
  connections = connectTo(redis.url, recordLog(), 1000);
  await subscribe(channel);
  await redis.client.config('RESETSTAT');
  // At the second ping, Sluice knows whether the first was answered.
  await until(async () => {
    const stats = await redis.client.info('commandstats');
    return Number(/cmdstat_ping:calls=(\d+)/.exec(stats)?.[1] ?? 0) >= 2;
  });
  await redis.client.publish(channel, 'message');
  await recorder.untilMessage('message');
  expect(recorder.subscribed).toEqual([channel]);
});

describeWithRedisProgram('a dead connection', () => {
  test('is replaced, and its channels are subscribed on another', async () => {
    const server = await startRedisProcess();
    const proxy = await startFaultProxy(server.port);
    const log = recordLog();
    await connections.close();
    connections = connectTo(asLimiterUser(proxy.url), log, 1000);
    await subscribe(channel);
    proxy.toServer.lose();
    proxy.toClient.lose();
    await until(() => log.messages.includes('subscriber does not answer; reconnecting'));
    await recorder.untilSubscribed(channel, 2);

    await server.command('PUBLISH', channel, 'message');
    await recorder.untilMessage('message');
    proxy.stop();
  });
});
