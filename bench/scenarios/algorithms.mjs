// What each algorithm costs Redis, beside other limiters that decide in Redis: its time for each check, one check a call,
// while it has much to do and while it has nothing else to do; its memory for a key, and for each further approval.
import { setTimeout as delay } from 'node:timers/promises';

import { limitersInRedis } from '../lib/limiters-in-redis.mjs';
import { inTurn } from '../lib/many-calls.mjs';
import { RedisServer } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { ratio, summary } from '../lib/statistics.mjs';

const AT_ONCE = 20;

/** Windows are so short that they end, and that steps move on, while the time is measured. */
const TIMED = { windowMillis: 2000, maximum: 100_000 };
const TIMED_KEYS = 200;
/** Of each key in each round. */
const TIMED_CHECKS = 50;
const COLD_CHECKS = 50;
const COLD_EVERY_MILLIS = 20;

/** No approval ceases to count while memory is measured. */
const WEIGHED = { windowMillis: 3_600_000, maximum: 1000 };
const WEIGHED_KEYS = 1000;
const WEIGHED_CHECKS = 50;

export async function algorithms({ redisProgram, rounds, with: paths }) {
  const sides = [];
  for (const { name, on } of limitersInRedis(paths)) {
    progress(`algorithms: memory of ${name}`);
    const redis = await RedisServer.start(redisProgram);
    const memory = await memoryOf(redis, on(redis.client, WEIGHED));
    const check = on(redis.client, TIMED);
    sides.push({ name, redis, check, memory, warm: [], cold: [] });
    await checkAll(check, 1);
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, redis, check, warm, cold } of sides) {
      progress(`algorithms: round ${round + 1} of ${rounds}, ${name}`);
      warm.push(await microsPerCall(redis, () => checkAll(check, TIMED_CHECKS)));
      cold.push(await microsPerCall(redis, () => checkNowAndThen(check)));
    }
  }
  for (const { redis } of sides) await redis.stop();
  return sides.map(({ name, memory, warm, cold }) => ({
    name,
    warmMicros: summary(warm),
    coldMicros: summary(cold),
    // The first one is a plain check.
    warmToPlain: ratio(warm, sides[0].warm),
    ...memory,
  }));
}

/** Each is checked by a call of its own, so a call is a decision. */
async function microsPerCall(redis, work) {
  await redis.resetStatistics();
  await work();
  return redis.microsPerScriptCall();
}

async function checkAll(check, times) {
  await inTurn({ keys: TIMED_KEYS, times, atOnce: AT_ONCE }, (key) => check(`timed-${key}`));
}

async function checkNowAndThen(check) {
  for (let i = 0; i < COLD_CHECKS; i += 1) {
    await delay(COLD_EVERY_MILLIS);
    await check(`timed-${i}`);
  }
}

async function memoryOf(redis, check) {
  // Loads the script, and opens the connection.
  await check('weighed-before');
  const all = (times) =>
    inTurn({ keys: WEIGHED_KEYS, times, atOnce: AT_ONCE }, (key) => check(`weighed-${key}`));
  const empty = await redis.usedBytes();
  await all(1);
  const created = await redis.usedBytes();
  await all(WEIGHED_CHECKS);
  const filled = await redis.usedBytes();
  return {
    bytesPerKey: (created - empty) / WEIGHED_KEYS,
    // Redis may have given back some of its own memory meanwhile.
    bytesPerApproval: Math.max(0, filled - created) / (WEIGHED_KEYS * WEIGHED_CHECKS),
  };
}
