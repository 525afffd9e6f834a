import { randomUUID } from 'node:crypto';

import type { Redis } from 'ioredis';

/** Redis's clock as the scripts see it, under a test's control. */
export interface RedisTime {
  /** To be given to the scripts in place of `lua/lib/now.lua`. */
  readonly replacements: Readonly<Record<string, string>>;
  set(millis: number): Promise<void>;
}

/**
 * The time at which controlled clocks start: a day ahead, so that no key that a script lets expire
 * at a controlled time is removed by Redis's real clock during the test.
 */
export function startOfControlledTime(): number {
  return Math.floor(Date.now()) + 24 * 60 * 60 * 1000;
}

export function controlledRedisTime(client: Redis): RedisTime {
  const clockKey = `test-clock-${randomUUID()}`;
  return {
    replacements: {
      'lib/now': `local function now_micros() return redis.call('GET', '${clockKey}') * 1000 end`,
    },
    set: async (millis) => {
      await client.set(clockKey, Math.floor(millis));
    },
  };
}
