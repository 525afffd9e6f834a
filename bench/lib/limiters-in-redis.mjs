// Limiters that decide in Redis, called without a server in front of them.
import { RateLimiterRedis } from 'rate-limiter-flexible';

import { scriptIn } from '../peers/redis-rate.mjs';
import { approvedAlone, keyLimits, scriptsOn } from './script-calls.mjs';

const slidingWindow = (steps) => ({ name: 'sliding_window', steps });

/**
 * Each has a name, and `on(client, {windowMillis, maximum})`, which returns how it checks a key: a function that rejects
 * if the check is not approved.
 * @param {Record<string, string>} paths of the peers in other languages
 */
export function limitersInRedis(paths) {
  return [
    sluice('a fixed window'),
    sluice('a sliding window of 10 steps', () => slidingWindow(10)),
    sluice('a sliding window of 60 steps', () => slidingWindow(60)),
    sluice('a token bucket', (maximum) => ({ name: 'token_bucket', burst: maximum })),
    { name: 'rate-limiter-flexible, a fixed window', on: rateLimiterFlexible },
    ...(paths['redis-rate'] ? [redisRate(paths['redis-rate'])] : []),
  ];
}

function sluice(name, algorithmOf = () => undefined) {
  return {
    name,
    on: (client, { windowMillis, maximum }) => {
      const limits = keyLimits(windowMillis, maximum, [], algorithmOf(maximum));
      const scripts = scriptsOn(client, limits);
      return (key) => approvedAlone(scripts, key);
    },
  };
}

function rateLimiterFlexible(client, { windowMillis, maximum }) {
  const duration = windowMillis / 1000;
  const limiter = new RateLimiterRedis({ storeClient: client, points: maximum, duration });
  return (key) => limiter.consume(key);
}

/** GCRA, called as the library calls it. */
function redisRate(path) {
  const script = scriptIn(path);
  return {
    name: 'redis_rate, GCRA',
    on: (client, { windowMillis, maximum }) => {
      const loaded = client.script('LOAD', script);
      const words = [maximum, maximum, windowMillis / 1000, 1];
      return async (key) => {
        const [allowed] = await client.evalsha(await loaded, 1, `rate:${key}`, ...words);
        if (allowed !== 1) throw new Error(`redis_rate did not approve ${key}`);
      };
    },
  };
}
