import { setImmediate as nextTick } from 'node:timers/promises';

import { Redis } from 'ioredis';
import { pino } from 'pino';

import type { Limiter, LimitsOf } from '../../src/limiter/limiter.js';
import type { InstanceBounds } from '../../src/limiter/memory/memory-budget.js';
import { MemoryLimiter } from '../../src/limiter/memory/memory-limiter.js';
import { connect, waitUntilReady } from '../../src/redis/connections/connect.js';
import { ConnectionSubscriber } from '../../src/redis/connections/connection-subscriber.js';
import { RedisLimiter, type RedisLimiterOptions } from '../../src/redis/redis-limiter.js';
import { type DeclaredLimits, keyLimits } from './limits.js';
import { ManualClock } from './manual-clock.js';
import { controlledRedisTime, type RedisTime, startOfControlledTime } from './redis-time.js';
import { unobserved } from './unguarded.js';
import { uniqueKey } from './unique-key.js';
import type { RedisForTests } from './use-redis.js';
import { policiesWith } from './policies.js';

/** A limiter on a clock that the test moves. */
export interface LimiterHarness {
  readonly limiter: Limiter;
  /** The time of the clock, in milliseconds since 1970. */
  now(): number;
  /** Lets time pass, and returns when all its effects have happened. */
  advance(millis: number): Promise<void>;
  /** Returns when nothing is under way between this limiter and its store. */
  quiet(): Promise<void>;
  /** How many approvals have lapsed that were kept for callers. */
  unclaimed(): number;
  /** The moments at which several timers were due. */
  ties(): readonly number[];
  /**
   * Another process with the same store takes the place of this one, which hands over its kept places, and still has the
   * other waiters. Undefined without a store.
   */
  readonly replace?: () => Promise<void>;
  close(): Promise<void>;
}

/** The limits of all keys, or of each key as of now. */
export type LimitsOfKeys = DeclaredLimits | ((key: string) => DeclaredLimits);

export type HarnessFactory = (
  limits: LimitsOfKeys,
  bounds?: Partial<InstanceBounds>,
) => Promise<LimiterHarness>;

function toLimitsOf(limits: LimitsOfKeys): LimitsOf {
  return (key) => keyLimits(typeof limits === 'function' ? limits(key) : limits);
}

/** More than any test needs. */
const UNBOUNDED: InstanceBounds = {
  maxIdsPerKey: 1_000_000,
  maxHoldsPerKey: 10_000,
  maxGroupsPerKey: 10_000,
};

const silent = pino({ level: 'silent' });

export const createMemoryHarness: HarnessFactory = (limits, bounds = {}) => {
  const clock = new ManualClock(startOfControlledTime());
  let unclaimed = 0;
  const observer = { unclaimed: (count: number) => (unclaimed += count) };
  const allBounds = { ...UNBOUNDED, ...bounds };
  const limiter = new MemoryLimiter(policiesWith(toLimitsOf(limits)), clock, allBounds, observer);
  return Promise.resolve({
    limiter,
    ties: () => clock.ties,
    unclaimed: () => unclaimed,
    now: () => clock.now(),
    advance: (millis) => clock.advance(millis),
    quiet: nextTick,
    close: () => limiter.close(),
  });
};

// So long that a short hang of the machine does not look like an outage.
const TIMEOUT_MILLIS = 60_000;

/** One process with the limiter on Redis. */
interface Replica {
  readonly limiter: RedisLimiter;
  /** How many commands it has sent. */
  sent(): number;
  /** Returns when Redis has answered what it was asked. */
  untilAnswered(): Promise<void>;
  /** Returns when the messages of Redis have arrived that it has published. */
  untilNotified(): Promise<void>;
  close(): Promise<void>;
}

async function startReplica(
  redis: RedisForTests,
  options: Omit<RedisLimiterOptions, 'connections' | 'timeoutMillis' | 'database' | 'logger'>,
): Promise<Replica> {
  const connected = connect(
    {
      mode: 'standalone',
      urls: [redis.url],
      database: 0,
      timeoutMillis: TIMEOUT_MILLIS,
      name: 'test',
    },
    silent,
  );
  await waitUntilReady(connected, TIMEOUT_MILLIS);
  // The test's own connection: a ping on it shows that all messages have arrived.
  const subscriptions = new Redis(redis.url, { autoResubscribe: false });
  let sent = 0;
  for (const client of [connected.commands as Redis, subscriptions]) {
    const send = client.sendCommand.bind(client);
    client.sendCommand = (command, stream) => {
      if (command.name !== 'ping') sent += 1;
      return send(command, stream);
    };
  }
  const subscriber = new ConnectionSubscriber(subscriptions, TIMEOUT_MILLIS, silent);
  const connections = { ...connected, subscriber };
  const limiter = new RedisLimiter({
    ...options,
    connections,
    timeoutMillis: TIMEOUT_MILLIS,
    database: 0,
    logger: silent,
  });
  return {
    limiter,
    sent: () => sent,
    untilAnswered: async () => {
      await connections.commands.ping();
    },
    untilNotified: async () => {
      await subscriptions.ping();
    },
    close: async () => {
      await limiter.close();
      subscriber.close();
      subscriptions.disconnect();
    },
  };
}

/** More than calls wait for others to be sent with. */
async function someTicks(): Promise<void> {
  for (let tick = 0; tick < 4; tick += 1) await nextTick();
}

/** Of one limiter at a time. They share a clock, so that Redis is given the scripts once. */
export function redisHarnessFactory(redis: RedisForTests): HarnessFactory {
  let time: RedisTime | undefined;
  return async (limits, bounds = {}) => {
    const clock = new ManualClock(startOfControlledTime());
    let unclaimed = 0;
    const redisTime = (time ??= controlledRedisTime(redis.client));
    await redisTime.set(clock.now());
    const keyPrefix = `${uniqueKey()}:`;
    const start = (replicaId: string): Promise<Replica> =>
      startReplica(redis, {
        limitsOf: toLimitsOf(limits),
        // Rules count as just loaded, so that their changes always apply.
        rulesLoadedAt: () => clock.now(),
        keyPrefix,
        replicaId,
        // A sixth of it is whole milliseconds. At a fraction, rules that were loaded now would count as loaded before.
        leaseMillis: 6_000,
        maxWaiters: Infinity,
        ...UNBOUNDED,
        ...bounds,
        clock,
        observer: { ...unobserved, unclaimed: (count) => (unclaimed += count) },
        replacements: redisTime.replacements,
        // In whole milliseconds, like the scripts' time, even if a timer is due in between.
        readTime: () => Promise.resolve(Math.floor(clock.now())),
      });
    let latest = await start('replica');
    const replicas = [latest];

    const sent = (): number => replicas.reduce((sum, replica) => sum + replica.sent(), 0);
    // Redis answers in order, so a pong means that everything before it has been answered, and a later pong on the other
    // connection that its messages have arrived. Another round waits for the calls that these have caused.
    const quiet = async (): Promise<void> => {
      await someTicks();
      for (let before = NaN; before !== sent();) {
        before = sent();
        await Promise.all(replicas.map((replica) => replica.untilAnswered()));
        await Promise.all(replicas.map((replica) => replica.untilNotified()));
        await someTicks();
      }
    };
    return {
      get limiter() {
        return latest.limiter;
      },
      ties: () => clock.ties,
      now: () => clock.now(),
      unclaimed: () => unclaimed,
      quiet,
      advance: async (millis) => {
        await quiet();
        await clock.advance(millis, {
          beforeTimers: (now) => redisTime.set(now),
          afterTimers: quiet,
        });
      },
      replace: async () => {
        latest.limiter.handOver();
        latest = await start(`replica-${replicas.length}`);
        replicas.push(latest);
      },
      close: async () => {
        for (const replica of replicas) await replica.close();
      },
    };
  };
}
