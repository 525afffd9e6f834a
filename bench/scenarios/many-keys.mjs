// A million live keys against a thousand: the rate of decisions, and the memory of Redis for each key.
import { randomUUID } from 'node:crypto';

import { saturate } from '../lib/load.mjs';
import { RedisServer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { keyLimits, naming, scriptsOn } from '../lib/script-calls.mjs';
import { ratio, ratios, summary } from '../lib/statistics.mjs';

const FEW = 1000;
const MANY = 1_000_000;
/** Long enough for all of them to live until the end. */
const WINDOW_MILLIS = 3_600_000;
const MAX_REQUESTS = 1_000_000_000;
const KEYS_PER_CALL = 50;
const CALLS_AT_ONCE = 20;

export async function manyKeys({ redisProgram, rounds, seconds }) {
  const sides = [];
  for (const keys of [FEW, MANY]) sides.push(await createSide(redisProgram, keys));
  for (const side of sides) await saturate(side.replica, { ...side.load, seconds: 3 });
  for (let round = 0; round < rounds; round += 1) {
    for (const { load, keys, replica, rates } of sides) {
      progress(`many keys: round ${round + 1} of ${rounds}, ${keys} keys`);
      rates.push((await saturate(replica, { ...load, seconds })).perSecond);
    }
  }
  for (const { replica, redis } of sides) {
    await replica.stop();
    await redis.stop();
  }
  const [few, many] = sides;
  return {
    few: { keys: FEW, perSecond: summary(few.rates) },
    many: { keys: MANY, perSecond: summary(many.rates), redisBytesPerKey: many.bytesPerKey },
    manyToFew: ratio(many.rates, few.rates),
    leastManyToFew: Math.min(...ratios(many.rates, few.rates)),
  };
}

/** A Redis with this many live keys, each with one approval, and a replica on it. */
async function createSide(redisProgram, keys) {
  const redis = await RedisServer.start(redisProgram);
  const bytesBefore = await redis.usedBytes();
  await fill(redis, 'live', keys);
  const bytesPerKey = ((await redis.usedBytes()) - bytesBefore) / keys;
  const replica = await Server.start('sluice', SLUICE, {
    REDIS_URL: redis.url,
    WINDOW_MILLIS: String(WINDOW_MILLIS),
    MAX_REQUESTS: String(MAX_REQUESTS),
  });
  return { redis, replica, keys, bytesPerKey, load: { name: 'live', keys }, rates: [] };
}

/** Creates the keys `<name>-1` to `<name>-<count>` by the service's own script, without HTTP. */
export async function fill(redis, name, count) {
  const scripts = scriptsOn(redis.client, keyLimits(WINDOW_MILLIS, MAX_REQUESTS));
  const overrides = { maxRequests: undefined, maxRequestsInQueue: undefined };
  const makeFrom = (first) => {
    const length = Math.min(KEYS_PER_CALL, count - first + 1);
    return scripts.check(
      Array.from({ length }, (_, i) => ({
        names: naming.namesOf(`${name}-${first + i}`),
        overrides,
        checks: [{ requestId: randomUUID(), request: { canWait: false } }],
        arePlain: true,
      })),
    );
  };
  const step = KEYS_PER_CALL * CALLS_AT_ONCE;
  for (let first = 1; first <= count; first += step) {
    if ((first - 1) % 100_000 === 0) progress(`${name}: ${first - 1} of ${count} keys made`);
    const starts = Array.from({ length: CALLS_AT_ONCE }, (_, i) => first + i * KEYS_PER_CALL);
    await Promise.all(starts.filter((start) => start <= count).map(makeFrom));
  }
}
