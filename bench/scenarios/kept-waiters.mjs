// What a waiter takes: without an id, with a request id, and with a place that is kept. Ten thousand wait on one replica,
// and are then approved together.
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { join } from 'node:path';

import { RedisServer, Server, SLUICE } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { summary } from '../lib/statistics.mjs';

const WAITERS = 10_000;
/** More at once would be reset, and would tell nothing about each. */
const COMING_AT_ONCE = 100;
const KEEP_MILLIS = 30_000;
const KEY = 'crowd';

const NO_ID = () => '';
const KINDS = [
  { name: 'without a request id', termsOf: NO_ID },
  { name: 'with a request id', termsOf: () => `&requestId=${randomUUID()}` },
  {
    name: 'with a kept place',
    termsOf: () => `&requestId=${randomUUID()}&keepMillis=${KEEP_MILLIS}`,
  },
];

export async function keptWaiters({ redisProgram, rounds, before }) {
  const sides = KINDS.map((kind) => ({ ...kind, program: SLUICE, runs: [] }));
  if (before) {
    const program = join(before, 'dist', 'main.js');
    sides.unshift({ name: 'before, without a request id', termsOf: NO_ID, program, runs: [] });
  }
  for (let round = 0; round < rounds; round += 1) {
    for (const side of sides) {
      progress(`kept waiters: round ${round + 1} of ${rounds}, ${side.name}`);
      side.runs.push(await measure(side, redisProgram));
    }
  }
  return {
    waiters: WAITERS,
    kinds: sides.map(({ name, runs }) => ({
      name,
      ...Object.fromEntries(
        Object.keys(runs[0]).map((figure) => [figure, summary(runs.map((run) => run[figure]))]),
      ),
    })),
  };
}

async function measure({ name, termsOf, program }, redisProgram) {
  const redis = await RedisServer.start(redisProgram);
  const replica = await Server.start(name, program, {
    REDIS_URL: redis.url,
    WINDOW_MILLIS: '3600000',
    MAX_REQUESTS: '1',
    MAX_REQUESTS_IN_QUEUE: String(WAITERS),
    // An address has half of the places.
    MAX_WAITERS: String(2 * WAITERS + 1),
    // A slow machine falls behind when thousands come.
    STORE_TIMEOUT_MILLIS: '10000',
  });
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
  const ask = (terms) => approve(`${replica.url}/rate/${KEY}?${terms}`, agent);
  // So that no code is compiled while it is measured.
  for (let asked = 0; asked < WAITERS; asked += COMING_AT_ONCE) {
    const warmUp = `${replica.url}/rate/warm-up?maxRequests=${2 * WAITERS}`;
    await Promise.all(Array.from({ length: COMING_AT_ONCE }, () => approve(warmUp, agent)));
  }
  await ask('');
  const look = async () => ({
    replicaBytes: await replica.residentBytes(),
    redisBytes: await redis.usedBytes(),
    redisMicros: await redis.cpuMicros(),
  });

  const empty = await look();
  const answers = [];
  for (let come = 0; come < WAITERS; come += COMING_AT_ONCE) {
    for (let i = 0; i < COMING_AT_ONCE; i += 1) answers.push(ask(`canWait=true${termsOf()}`));
    await untilWaiting(redis, come + COMING_AT_ONCE);
  }
  const crowded = await look();
  // The check that raises the maximum waits behind the others.
  await Promise.all([...answers, ask(`canWait=true&maxRequests=${2 * WAITERS}`)]);
  const served = await look();
  agent.destroy();
  await replica.stop();
  await redis.stop();
  const each = (figure, earlier, later) => (later[figure] - earlier[figure]) / WAITERS;
  return {
    replicaBytes: each('replicaBytes', empty, crowded),
    redisBytes: each('redisBytes', empty, crowded),
    redisMicrosToJoin: each('redisMicros', empty, crowded),
    redisMicrosToApprove: each('redisMicros', crowded, served),
  };
}

/** Resolves with the approval. @throws Error if the answer is none */
function approve(url, agent) {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method: 'POST', agent }, (response) => {
      response.resume();
      response.once('end', resolve);
      if (response.statusCode !== 200) reject(new Error(`an answer of ${response.statusCode}`));
    });
    asked.once('error', reject);
    asked.end();
  });
}

async function untilWaiting(redis, count) {
  const waiting = async () => {
    const records = await redis.client.hvals(`sluice:{${KEY}}:records`);
    return records.filter((text) => JSON.parse(text).state === 'waiting').length;
  };
  while ((await waiting()) < count) {
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
  }
}
