import { randomUUID } from 'node:crypto';

import type { Redis } from 'ioredis';

/** The scripts' clock, under a test's control. */
export interface RedisTime {
  /** A replacement for `lua/lib/now.lua` in the scripts. */
  readonly replacements: Readonly<Record<string, string>>;
  /** Redis's clock has whole microseconds. */
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
      'lib/now': `return { micros = function() return tonumber(redis.call('GET', '${clockKey}')) end }`,
    },
    set: async (millis) => {
      await client.set(clockKey, Math.round(millis * 1000));
    },
  };
}
