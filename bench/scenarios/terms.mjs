// What hits, holds and further limits cost Redis: its time for each check, one check a call, and its memory for each
// approval.
import { DEFAULT_ALGORITHM } from '../../dist/limiter/kinds/kinds.js';
import { RedisServer } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { inTurn } from '../lib/many-calls.mjs';
import { approvedAlone, keyLimits, scriptsOn } from '../lib/script-calls.mjs';
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
];

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
      await side.redis.resetStatistics();
      const before = await side.redis.usedBytes();
      await checkAll(side, CHECKS);
      side.bytes.push(((await side.redis.usedBytes()) - before) / (KEYS * CHECKS));
      side.times.push(await side.redis.microsPerScriptCall());
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

function limitsOf({ limits }) {
  return keyLimits(WINDOW_MILLIS, MAX_REQUESTS, furtherLimits(limits - 1));
}

function furtherLimits(count) {
  return Array.from({ length: count }, (_, i) => ({
    name: `limit-${i}`,
    windowMillis: WINDOW_MILLIS,
    maximum: MAX_REQUESTS,
    algorithm: DEFAULT_ALGORITHM,
    counts: i % 2 === 0 ? 'requests' : 'hits',
    keepsReleased: false,
  }));
}

/** Checks each key `checks` times. */
async function checkAll({ scripts, hits, holdMillis }, checks) {
  await inTurn({ keys: KEYS, times: checks, atOnce: AT_ONCE }, (key) =>
    approvedAlone(scripts, `terms-${key}`, { hits, holdMillis }),
  );
}
