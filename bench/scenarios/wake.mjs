// How soon after a window's end waiters are answered: 400 waiters on three replicas, against one bare server that
// answers 400 open requests.
import { setTimeout as delay } from 'node:timers/promises';

import { hold, holdOnAll } from '../lib/load.mjs';
import { peer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { now, redisClockAhead } from '../lib/redis-clock.mjs';
import { summary } from '../lib/statistics.mjs';

const WAITERS = 400;
const WINDOW_MILLIS = 1000;
/** A window on a machine that was too slow to bring all waiters in before its end measures nothing. */
const MAX_SPOILT_WINDOWS = 20;
/** This many windows of each are measured in a turn. */
const TURN = 10;
const WARM_UPS = 50;

export async function wake({ redis, windows }) {
  const environment = {
    REDIS_URL: redis.url,
    MAX_REQUESTS: String(WAITERS),
    MAX_REQUESTS_IN_QUEUE: String(WAITERS),
    WINDOW_MILLIS: String(WINDOW_MILLIS),
  };
  const replicas = await Promise.all(
    ['first', 'second', 'third'].map((name) => Server.start(name, SLUICE, environment)),
  );
  const bare = await Server.start('bare', peer('held'));

  const sluiceRuns = [];
  const bareRuns = [];
  await warmUp(replicas, redis, bare);
  while (sluiceRuns.length < windows) {
    progress(`wake: ${sluiceRuns.length} of ${windows} windows`);
    for (let i = 0; i < TURN; i += 1) sluiceRuns.push(await windowOfSluice(replicas, redis));
    for (let i = 0; i < TURN; i += 1) bareRuns.push(await windowOfBare(bare));
  }
  await Promise.all([...replicas, bare].map((server) => server.stop()));
  return [describe('sluice', sluiceRuns), describe('bare', bareRuns)];
}

const describe = (program, runs) => ({
  program,
  firstMillis: summary(runs.map((run) => run.first)),
  lastMillis: summary(runs.map((run) => run.last)),
});

/** Warms V8 up: as many waiters as in the windows, without measuring their time. */
async function warmUp(replicas, redis, bare) {
  for (let i = 0; i < WARM_UPS; i += 1) {
    progress(`wake: warm-up ${i + 1} of ${WARM_UPS}`);
    const key = `warm-up-${i}`;
    await hold(replicas[0], 1, `/rate/${key}?maxRequests=1`);
    const held = holdOnAll(replicas, WAITERS, `/rate/${key}?canWait=true`);
    await untilQueued(redis, key);
    await hold(replicas[0], 1, `/rate/${key}?maxRequests=${WAITERS + 2}`);
    await held;
    await windowOfBare(bare);
  }
}

let keys = 0;
let spoilt = 0;

/** A key of its own for each window: 400 approvals fill the first, and 400 wait for the second. */
async function windowOfSluice(replicas, redis) {
  keys += 1;
  const key = `wake-${keys}`;
  await hold(replicas[0], WAITERS, `/rate/${key}`);
  const held = holdOnAll(replicas, WAITERS, `/rate/${key}?canWait=true`);
  const start = Number(await redis.client.hget(`sluice:{${key}}`, 'start'));
  const end = start + WINDOW_MILLIS;
  const ahead = await redisClockAhead(redis);
  const allQueued = await untilQueued(redis, key, end + ahead);
  const answers = await held;
  if (allQueued) return sinceMoment(answers, end + ahead);
  spoilt += 1;
  if (spoilt > MAX_SPOILT_WINDOWS) throw new Error('this machine is too slow to measure wakes');
  return windowOfSluice(replicas, redis);
}

/** @returns whether all wait in time */
async function untilQueued(redis, key, giveUpAt = Infinity) {
  while (now() < giveUpAt) {
    if ((await redis.client.hlen(`sluice:{${key}}:records`)) === WAITERS) return true;
    await delay(10);
  }
  return false;
}

async function windowOfBare(bare) {
  const held = hold(bare, WAITERS, '/');
  while ((await bare.ask('held')).held < WAITERS) await delay(10);
  await delay(50);
  const { beganAt } = await bare.ask('answer');
  return sinceMoment(await held, beganAt);
}

function sinceMoment(answers, moment) {
  const times = answers.map(({ at }) => at - moment);
  return { first: Math.min(...times), last: Math.max(...times) };
}
