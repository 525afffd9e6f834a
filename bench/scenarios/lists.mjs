// What waiters cost in Redis by the number of the lists in which they wait: ten thousand join, and are then approved, one by
// one and fifty by a call. Directly by the scripts: no HTTP.
import { randomUUID } from 'node:crypto';

import { RedisServer } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { keyLimits, naming, scriptsOn } from '../lib/script-calls.mjs';
import { summary } from '../lib/statistics.mjs';

const WAITERS = 10_000;
const JOINING_AT_ONCE = 100;
/** Approved one by one, and as many in calls of this size. */
const APPROVED = 3000;
const TOGETHER = 50;

const lane = (i) => ({ kind: 'lane', name: `lane-${i}`, headStartMillis: 1000 * i });
const group = (i) => ({
  kind: 'group',
  name: `tenant-${String(i).padStart(4, '0')}`,
  weight: 1,
  maxRequests: undefined,
});
const KINDS = [
  { name: 'one list', listOf: () => undefined },
  { name: '5 lanes', listOf: (i) => lane(i % 5) },
  { name: '1 group', listOf: () => group(0) },
  { name: '100 groups', listOf: (i) => group(i % 100) },
  { name: '10,000 groups', listOf: group },
];

export async function lists({ redisProgram, rounds }) {
  const sides = KINDS.map((kind) => ({ ...kind, runs: [] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const side of sides) {
      progress(`lists: round ${round + 1} of ${rounds}, ${side.name}`);
      side.runs.push(await measure(side, redisProgram));
    }
  }
  return {
    waiters: WAITERS,
    together: TOGETHER,
    kinds: sides.map(({ name, runs }) => ({
      name,
      ...Object.fromEntries(
        Object.keys(runs[0]).map((figure) => [figure, summary(runs.map((run) => run[figure]))]),
      ),
    })),
  };
}

async function measure({ listOf }, redisProgram) {
  const redis = await RedisServer.start(redisProgram);
  const limits = { ...keyLimits(3_600_000, 1), maxRequestsInQueue: WAITERS };
  const scripts = scriptsOn(redis.client, limits);
  const names = naming.namesOf('crowd');
  const check = async (checks, maxRequests) => {
    const overrides = { maxRequests, maxRequestsInQueue: undefined };
    const [reply] = await scripts.check([
      { names, overrides, waiting: undefined, checks, arePlain: false },
    ]);
    if (reply instanceof Error) throw reply;
    return reply.verdicts;
  };
  const approveUpTo = (maximum) =>
    check([{ requestId: randomUUID(), request: { canWait: false } }], maximum);
  await approveUpTo(1);

  const empty = { micros: await redis.cpuMicros(), bytes: await redis.usedBytes() };
  for (let joined = 0; joined < WAITERS; joined += JOINING_AT_ONCE) {
    const joining = Array.from({ length: JOINING_AT_ONCE }, (_, i) => ({
      requestId: randomUUID(),
      request: { canWait: true, list: listOf(joined + i) },
    }));
    const verdicts = await check(joining);
    if (verdicts.some((verdict) => verdict < 2)) throw new Error('a check does not wait');
  }
  const crowded = { micros: await redis.cpuMicros(), bytes: await redis.usedBytes() };
  for (let i = 1; i <= APPROVED; i += 1) await approveUpTo(1 + i);
  const singly = { micros: await redis.cpuMicros() };
  for (let i = TOGETHER; i <= APPROVED; i += TOGETHER) await approveUpTo(1 + APPROVED + i);
  const together = { micros: await redis.cpuMicros() };
  const left = await redis.client.hlen(names.records);
  if (left !== WAITERS - 2 * APPROVED) throw new Error(`${left} wait still`);
  await redis.stop();
  return {
    bytes: (crowded.bytes - empty.bytes) / WAITERS,
    microsToJoin: (crowded.micros - empty.micros) / WAITERS,
    microsSingly: (singly.micros - crowded.micros) / APPROVED,
    microsTogether: (together.micros - singly.micros) / APPROVED,
  };
}
