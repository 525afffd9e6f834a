import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { Redis } from 'ioredis';
import { pino } from 'pino';

import { parseSettings } from '../../src/config.js';
import { startDraining } from '../../src/http/drain.js';
import { createHttpApp } from '../../src/http/routes.js';
import type { Limiter, Limits } from '../../src/limiter/limiter.js';
import { MemoryLimiter } from '../../src/limiter/memory/memory-limiter.js';
import { connect } from '../../src/redis/connections.js';
import { RedisLimiter } from '../../src/redis/redis-limiter.js';
import { HttpLimiter } from './http-limiter.js';
import { ManualClock } from './manual-clock.js';
import { controlledRedisTime, startOfControlledTime } from './redis-time.js';
import { uniqueKey } from './unique-key.js';

/** A limiter on a clock that the test moves. */
export interface LimiterHarness {
  readonly limiter: Limiter;
  /** Lets time pass, and returns when what it sets in motion has happened. */
  advance(millis: number): Promise<void>;
  /** Returns when nothing is under way between this limiter and its store. */
  quiet(): Promise<void>;
  close(): Promise<void>;
}

export type HarnessFactory = (limits: Limits) => Promise<LimiterHarness>;

const silent = pino({ level: 'silent' });

export const createMemoryHarness: HarnessFactory = (limits) => {
  const clock = new ManualClock(startOfControlledTime());
  const limiter = new MemoryLimiter(limits, clock);
  return Promise.resolve({
    limiter,
    advance: (millis) => clock.advance(millis),
    quiet: nextTurn,
    close: () => limiter.close(),
  });
};

/** @param redisUrl asked for when a harness is made, since Redis starts before the tests do */
export function redisHarnessFactory(redisUrl: () => string): HarnessFactory {
  return async (limits) => {
    const control = new Redis(redisUrl());
    const connections = connect({ url: redisUrl(), timeoutMillis: 10_000, name: 'test' }, silent);
    await Promise.all([once(connections.commands, 'ready'), once(connections.subscriber, 'ready')]);
    const clock = new ManualClock(startOfControlledTime());
    const time = controlledRedisTime(control);
    await time.set(clock.now());
    const limiter = new RedisLimiter({
      connections,
      limits,
      keyPrefix: `${uniqueKey()}:`,
      replicaId: 'replica',
      leaseMillis: 5_000,
      clock,
      logger: silent,
      luaReplacements: time.replacements,
    });

    // Redis answers in order, so a pong means that everything before it has been answered; what an
    // answer sets in motion is waited for by the next rounds.
    const quiet = async (): Promise<void> => {
      for (let round = 0; round < 4; round += 1) {
        await nextTurn();
        await nextTurn();
        await connections.commands.ping();
        await connections.subscriber.ping();
      }
    };
    return {
      limiter,
      quiet,
      advance: async (millis) => {
        await quiet();
        await clock.advance(millis, { beforeTimers: (now) => time.set(now), afterTimers: quiet });
      },
      close: async () => {
        await limiter.close();
        control.disconnect();
      },
    };
  };
}

/** The same limiter, seen by a client over HTTP. */
export function overHttp(factory: HarnessFactory): HarnessFactory {
  return async (limits) => {
    const inner = await factory(limits);
    const app = createHttpApp(inner.limiter, parseSettings({}), silent);
    const server = createServer(app);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    return {
      ...inner,
      limiter: new HttpLimiter(`http://127.0.0.1:${port}`, inner.limiter),
      close: async () => {
        startDraining(app);
        await inner.close();
        const closed = once(server, 'close');
        server.close();
        await closed;
      },
    };
  };
}
