import { setImmediate as nextTick } from 'node:timers/promises';

import { Redis } from 'ioredis';
import { pino } from 'pino';

import { startDraining } from '../../src/http/replies/reply.js';
import type { Limiter, LimitsOf } from '../../src/limiter/limiter.js';
import type { InstanceBounds } from '../../src/limiter/memory/approvals.js';
import { MemoryLimiter } from '../../src/limiter/memory/memory-limiter.js';
import { connect, waitUntilReady } from '../../src/redis/connections/connect.js';
import { ConnectionSubscriber } from '../../src/redis/connections/connection-subscriber.js';
import { RedisLimiter } from '../../src/redis/redis-limiter.js';
import { httpAppOver, serve } from './http-app.js';
import { HttpLimiter } from './http-limiter.js';
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
  /** How many approvals have lapsed that were held for callers. */
  unclaimed(): number;
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
const UNBOUNDED: InstanceBounds = { maxIdsPerKey: 1_000_000, maxHoldsPerKey: 10_000 };

const silent = pino({ level: 'silent' });

export const createMemoryHarness: HarnessFactory = (limits, bounds = {}) => {
  const clock = new ManualClock(startOfControlledTime());
  let unclaimed = 0;
  const observer = { unclaimed: (count: number) => (unclaimed += count) };
  const allBounds = { ...UNBOUNDED, ...bounds };
  const limiter = new MemoryLimiter(policiesWith(toLimitsOf(limits)), clock, allBounds, observer);
  return Promise.resolve({
    limiter,
    unclaimed: () => unclaimed,
    now: () => clock.now(),
    advance: (millis) => clock.advance(millis),
    quiet: nextTick,
    close: () => limiter.close(),
  });
};

/** Of one limiter at a time. They share a clock, so that Redis is given the scripts once. */
export function redisHarnessFactory(redis: RedisForTests): HarnessFactory {
  let time: RedisTime | undefined;
  return async (limits, bounds = {}) => {
    // So long that a short hang of the machine does not look like an outage.
    const timeoutMillis = 60_000;
    const connected = connect(
      { mode: 'standalone', urls: [redis.url], database: 0, timeoutMillis, name: 'test' },
      silent,
    );
    await waitUntilReady(connected, timeoutMillis);
    // The test's own connection: a ping on it shows that all messages have arrived.
    const subscriptions = new Redis(redis.url, { autoResubscribe: false });
    const connections = {
      ...connected,
      subscriber: new ConnectionSubscriber(subscriptions, timeoutMillis, silent),
    };
    const clock = new ManualClock(startOfControlledTime());
    let unclaimed = 0;
    const redisTime = (time ??= controlledRedisTime(redis.client));
    await redisTime.set(clock.now());
    const limiter = new RedisLimiter({
      connections,
      limitsOf: toLimitsOf(limits),
      // Rules count as just loaded, so that their changes always apply.
      rulesLoadedAt: () => clock.now(),
      keyPrefix: `${uniqueKey()}:`,
      replicaId: 'replica',
      // A sixth of it is whole milliseconds. At a fraction, rules that were loaded now would count as loaded before.
      leaseMillis: 6_000,
      database: 0,
      timeoutMillis,
      maxWaiters: Infinity,
      ...UNBOUNDED,
      ...bounds,
      clock,
      logger: silent,
      observer: { ...unobserved, unclaimed: (count) => (unclaimed += count) },
      luaReplacements: redisTime.replacements,
      // In whole milliseconds, like the scripts' time, even if a timer is due in between.
      readTime: () => Promise.resolve(Math.floor(clock.now())),
    });

    // Redis answers in order, so a pong means that everything before it has been answered. The next
    // rounds wait for calls that the answers cause.
    const quiet = async (): Promise<void> => {
      for (let round = 0; round < 4; round += 1) {
        await nextTick();
        await nextTick();
        await connections.commands.ping();
        await subscriptions.ping();
      }
    };
    return {
      limiter,
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
      close: async () => {
        await limiter.close();
        connections.subscriber.close();
        subscriptions.disconnect();
      },
    };
  };
}

/** The same limiter over HTTP. */
export function overHttp(factory: HarnessFactory): HarnessFactory {
  return async (limits, bounds) => {
    const inner = await factory(limits, bounds);
    const app = httpAppOver(inner.limiter);
    const served = await serve(app);
    const limiter = new HttpLimiter(served.url, inner.limiter);
    const quiet = async (): Promise<void> => {
      await limiter.quiet();
      await inner.quiet();
    };
    return {
      ...inner,
      limiter,
      quiet,
      advance: async (millis) => {
        await quiet();
        await inner.advance(millis);
        await quiet();
      },
      close: async () => {
        startDraining(app.app);
        await inner.close();
        await served.close();
      },
    };
  };
}
