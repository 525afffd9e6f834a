// The gain of `POST /rate` with fifty checks in a request: decisions a second, against single checks.
import { setTimeout as delay } from 'node:timers/promises';

import { checksAtOnce, SINGLE_CHECK } from '../lib/asking.mjs';
import { saturate } from '../lib/load.mjs';
import { Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { ratio, summary } from '../lib/statistics.mjs';

const CHECKS = 50;
const ASKINGS = { single: SINGLE_CHECK, atOnce: checksAtOnce(CHECKS) };
const LOADS = { oneKey: { name: 'hot', keys: 1 }, manyKeys: { name: 'key', keys: 5000 } };

export async function manyAtOnce({ redis, rounds, seconds }) {
  const environment = {
    REDIS_URL: redis.url,
    MAX_REQUESTS: '1000000000',
    // On a slow machine, thousands of checks at a time take longer than a store may by default.
    STORE_TIMEOUT_MILLIS: '10000',
  };
  const replica = await Server.start('sluice', SLUICE, environment);
  const measured = { checks: CHECKS };
  for (const [name, load] of Object.entries(LOADS)) {
    measured[name] = await inTurns({ replica, redis, name, load }, { rounds, seconds });
  }
  await replica.stop();
  return measured;
}

/** Single checks and bulk requests, in turns, after a round that is not counted. */
async function inTurns({ replica, redis, name, load }, { rounds, seconds }) {
  const runs = { single: [], atOnce: [] };
  for (let round = -1; round < rounds; round += 1) {
    for (const [how, asking] of Object.entries(ASKINGS)) {
      const turn = round < 0 ? 'warm-up' : `round ${round + 1} of ${rounds}`;
      progress(`many at once: ${name}, ${turn}, ${how}`);
      const [cpu, redisCpu] = [await replica.cpuMicros(), await redis.cpuMicros()];
      const { perSecond, answers } = await saturate(replica, { ...load, asking, seconds });
      const cpuMicros = ((await replica.cpuMicros()) - cpu) / answers;
      const redisCpuMicros = ((await redis.cpuMicros()) - redisCpu) / answers;
      if (round >= 0) runs[how].push({ perSecond, cpuMicros, redisCpuMicros });
      await untilIdle(replica);
    }
  }
  const values = (how, figure) => runs[how].map((run) => run[figure]);
  const summarize = (how) => ({
    perSecond: summary(values(how, 'perSecond')),
    cpuMicros: summary(values(how, 'cpuMicros')),
    redisCpuMicros: summary(values(how, 'redisCpuMicros')),
  });
  return {
    single: summarize('single'),
    atOnce: summarize('atOnce'),
    toSingle: ratio(values('atOnce', 'perSecond'), values('single', 'perSecond')),
  };
}

/** wrk ends with unanswered requests, whose approvals are given back. The next turn must not include this work. */
async function untilIdle(replica) {
  const LOOK_MILLIS = 200;
  for (let before = -Infinity; ;) {
    const cpu = await replica.cpuMicros();
    if (cpu - before < 0.05 * LOOK_MILLIS * 1000) return;
    before = cpu;
    await delay(LOOK_MILLIS);
  }
}
