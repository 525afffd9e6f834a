// Waiters of a token bucket on three replicas: what it takes to serve them at their pace, and how late each is answered.
import { setTimeout as delay } from 'node:timers/promises';

import { bucketIn, dueAt } from '../lib/bucket-times.mjs';
import { holdOnAll } from '../lib/load.mjs';
import { Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { now, redisClockAhead } from '../lib/redis-clock.mjs';
import { percentile, summary } from '../lib/statistics.mjs';

const CROWDS = [400, 10_000].flatMap((waiters) =>
  [100, 1000].map((perSecond) => ({ waiters, perSecond })),
);
const WARM_UP = { waiters: 400, perSecond: 1000 };
const WARM_UPS = 3;
/** The longest time of a round in which the waiters are served at their pace; then the others are let go. */
const MOST_SECONDS = 5;
const BETWEEN_LOOKS_MILLIS = 100;
const LET_GO_PER_SECOND = 1_000_000;
/** Some come at a time: a server that is busy resets some connections if all of them come at once. */
const AT_ONCE = 400;
/** Longer than it takes them all to come. */
const PAUSE_MILLIS = 60_000;

export async function pacedWaiters({ redis, rounds }) {
  const environment = {
    REDIS_URL: redis.url,
    ALGORITHM: 'token_bucket',
    MAX_REQUESTS_IN_QUEUE: '10000',
    MAX_WAITERS: '10000',
    // A slow moment while they come must not end the measurement.
    STORE_TIMEOUT_MILLIS: '10000',
  };
  const replicas = await Promise.all(
    ['first', 'second', 'third'].map((name) => Server.start(name, SLUICE, environment)),
  );
  for (let i = 0; i < WARM_UPS; i += 1) {
    progress(`paced waiters: warm-up ${i + 1} of ${WARM_UPS}`);
    await serveCrowd(replicas, redis, WARM_UP);
  }
  const measured = CROWDS.map((crowd) => ({ ...crowd, runs: [] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { runs, ...crowd } of measured) {
      const { waiters, perSecond } = crowd;
      progress(
        `paced waiters: round ${round + 1} of ${rounds}, ${waiters} at ${perSecond} a second`,
      );
      runs.push(await serveCrowd(replicas, redis, crowd));
    }
  }
  await Promise.all(replicas.map((server) => server.stop()));
  return measured.map(describe);
}

function describe({ runs, ...crowd }) {
  const of = (figure) => summary(runs.map(figure));
  return {
    ...crowd,
    servedPerSecond: of((run) => run.servedPerSecond),
    callsPerSecond: of((run) => run.callsPerSecond),
    redisCpuPercent: of((run) => run.redisCpuPercent),
    delayMillis: {
      median: of(({ delays }) => percentile(delays, 50)),
      p99: of(({ delays }) => percentile(delays, 99)),
    },
  };
}

let keys = 0;

/** They come while a key of their own is paused. */
async function serveCrowd(replicas, redis, { waiters, perSecond }) {
  keys += 1;
  const key = `paced-${keys}`;
  const url = `${replicas[0].url}/rate/${key}`;
  await succeeds(fetch(`${url}?pauseMillis=${PAUSE_MILLIS}`, { method: 'PUT' }));
  const path = `/rate/${key}?canWait=true&maxRequests=${perSecond}`;
  const held = [];
  for (let came = 0; came < waiters; came += AT_ONCE) {
    held.push(holdOnAll(replicas, AT_ONCE, path));
    while ((await redis.client.hlen(`sluice:{${key}}:records`)) < came + AT_ONCE) await delay(20);
  }
  const ahead = await redisClockAhead(redis);

  await succeeds(fetch(`${url}?pauseMillis=0`, { method: 'PUT' }));
  const begin = await countersOf(redis, key, waiters);
  const span = Math.min(MOST_SECONDS, (waiters - begin.bucket.served) / perSecond) * 1000;
  const buckets = [begin.bucket, ...(await bucketsDuring(span, redis, key, waiters))];
  const end = await countersOf(redis, key, waiters);
  // Nobody is approved by this check itself while others wait.
  await fetch(`${url}?maxRequests=${LET_GO_PER_SECOND}`, { method: 'POST' });

  const answers = (await Promise.all(held)).flat();
  const answeredAt = answers.map(({ at }) => at).sort((a, b) => a - b);
  const seconds = (end.time - begin.time) / 1000;
  const delays = [];
  for (let number = begin.bucket.served + 1; number <= end.bucket.served; number += 1) {
    const due = dueAt(buckets, perSecond, number) + ahead;
    delays.push(answeredAt[number - 1] - due);
  }
  return {
    servedPerSecond: delays.length / seconds,
    callsPerSecond: (end.calls - begin.calls) / seconds,
    redisCpuPercent: (end.cpuMicros - begin.cpuMicros) / seconds / 1e4,
    delays,
  };
}

/** The bucket, again and again for `millis`. */
async function bucketsDuring(millis, redis, key, waiters) {
  const endsAt = now() + millis;
  const buckets = [];
  for (let left = millis; left > 0; left = endsAt - now()) {
    await delay(Math.min(BETWEEN_LOOKS_MILLIS, left));
    buckets.push(await bucketIn(redis, key, waiters));
  }
  return buckets;
}

async function countersOf(redis, key, waiters) {
  const bucket = await bucketIn(redis, key, waiters);
  const [calls, cpuMicros] = await Promise.all([redis.scriptCalls(), redis.cpuMicros()]);
  return { bucket, calls, cpuMicros, time: now() };
}

async function succeeds(answer) {
  const { status } = await answer;
  if (status !== 200) throw new Error(`a pause was answered with ${status}`);
}
