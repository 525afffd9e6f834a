// What hits, holds, further limits and the kinds of limits cost Redis: its time for each check, one check a call, and its memory for each
// approval.
import { randomUUID } from 'node:crypto';

import { FIXED_WINDOW } from '../../dist/limiter/limits.js';
import { RedisServer } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { keyLimits, naming, scriptsOn } from '../lib/script-calls.mjs';
import { summary } from '../lib/statistics.mjs';

const KEYS = 200;
/** Of each key in each round. */
const CHECKS = 50;
const AT_ONCE = 20;
/** No window ends meanwhile. */
const WINDOW_MILLIS = 3_600_000;
const MAX_REQUESTS = 1_000_000_000;
const HOLD_MILLIS = 3_600_000;

const CASES = [
  { name: 'one limit', limits: 1 },
  { name: 'one limit, 5 hits each', limits: 1, hits: 5 },
  { name: 'one limit, each held', limits: 1, holdMillis: HOLD_MILLIS },
  { name: '2 limits', limits: 2 },
  { name: '5 limits', limits: 5 },
  { name: '2 limits, 5 hits each', limits: 2, hits: 5 },
  { name: 'a sliding window of 10 steps', limits: 1, algorithm: slidingWindow(10) },
  { name: 'a sliding window of 60 steps', limits: 1, algorithm: slidingWindow(60) },
  {
    name: 'a token bucket',
    limits: 1,
    algorithm: { name: 'token_bucket', burst: MAX_REQUESTS },
  },
];

/** Short, so that the calls of a round are in all of its steps. */
const SLIDING_MILLIS = 2000;

function slidingWindow(steps) {
  return { name: 'sliding_window', steps };
}

export async function terms({ redisProgram, rounds }) {
  const sides = [];
  for (const one of CASES) {
    const redis = await RedisServer.start(redisProgram);
    const scripts = scriptsOn(redis.client, limitsOf(one));
    const side = { ...one, redis, scripts, times: [], bytes: [] };
    // Creates the keys, and loads the script.
    await checkAll(side, 1);
    sides.push(side);
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const side of sides) {
      progress(`terms: round ${round + 1} of ${rounds}, ${side.name}`);
      await side.redis.client.call('CONFIG', 'RESETSTAT');
      const before = await side.redis.usedBytes();
      await checkAll(side, CHECKS);
      side.bytes.push(((await side.redis.usedBytes()) - before) / (KEYS * CHECKS));
      side.times.push(await microsPerCall(side.redis));
    }
  }
  for (const { redis } of sides) await redis.stop();
  return sides.map(({ name, times, bytes }) => ({
    name,
    redisMicros: summary(times),
    // Sets and hashes grow in steps, so one round is no measure.
    bytesPerApproval: bytes.reduce((sum, each) => sum + each, 0) / bytes.length,
  }));
}

function limitsOf({ limits, algorithm }) {
  const millis = algorithm?.name === 'sliding_window' ? SLIDING_MILLIS : WINDOW_MILLIS;
  return keyLimits(millis, MAX_REQUESTS, furtherLimits(limits - 1), algorithm);
}

function furtherLimits(count) {
  return Array.from({ length: count }, (_, i) => ({
    name: `limit-${i}`,
    windowMillis: WINDOW_MILLIS,
    maximum: MAX_REQUESTS,
    algorithm: FIXED_WINDOW,
    counts: i % 2 === 0 ? 'requests' : 'hits',
    keepsReleased: false,
  }));
}

/** Checks each key `checks` times. Every check must be approved. */
async function checkAll({ scripts, hits, holdMillis }, checks) {
  const overrides = { maxRequests: undefined, maxRequestsInQueue: undefined };
  const check = async (key) => {
    const [reply] = await scripts.check([
      {
        names: naming.namesOf(`terms-${key}`),
        overrides,
        checks: [{ requestId: randomUUID(), canWait: false, hits, holdMillis }],
      },
    ]);
    if (reply instanceof Error) throw reply;
    if (reply.verdicts[0] !== 1) throw new Error(`not approved: ${reply.verdicts[0]}`);
  };
  for (let round = 0; round < checks; round += 1) {
    for (let first = 0; first < KEYS; first += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => check(first + i)));
    }
  }
}

/** Redis's own time for each call of a function since its statistics were reset. */
async function microsPerCall({ client }) {
  const stats = await client.info('commandstats');
  const [, calls, micros] = /^cmdstat_fcall:calls=(\d+),usec=(\d+)/m.exec(stats);
  return Number(micros) / Number(calls);
}
