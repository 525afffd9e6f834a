// What waiters cost in Redis by the number of the lists in which they wait: ten thousand join, and are then approved, one by
// one and fifty by a call. Directly by the scripts: no HTTP.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

import { DEFAULT_ALGORITHM } from '../../dist/limiter/kinds/kinds.js';
import { RedisServer } from '../lib/processes.mjs';
import { progress } from '../lib/progress.mjs';
import { keyLimits, naming, scriptsOn } from '../lib/script-calls.mjs';
import { summary } from '../lib/statistics.mjs';

const WAITERS = 10_000;
const JOINING_AT_ONCE = 100;
/** Approved one by one, and as many in calls of this size. */
const APPROVED = 3000;
const TOGETHER = 50;
/** Approved one by one after pauses in which Redis becomes cold. */
const APPROVED_COLD = 100;
const COLD_MILLIS = 20;
/** This many calls find that all groups are stopped. */
const STOPPING_CALLS = 30;

const lane = (i) => ({ kind: 'lane', name: `lane-${i}`, headStartMillis: 1000 * i });
const group = (i) => ({
  kind: 'group',
  name: `tenant-${String(i).padStart(4, '0')}`,
  weight: 1,
  maxRequests: undefined,
});
const limitedGroup = (i) => ({ ...group(i), hasLimits: true });
/** A limit that each group has to itself. */
function limitOfGroups(maximum, maxima) {
  return {
    ...{ name: 'tenant', windowMillis: 3_600_000, maximum, algorithm: DEFAULT_ALGORITHM },
    ...{ counts: 'requests', keepsReleased: false, perGroup: { maxima } },
  };
}
const OPEN = limitOfGroups(WAITERS, new Map());

const KINDS = [
  { name: 'one list', listOf: () => undefined },
  { name: '5 lanes', listOf: (i) => lane(i % 5) },
  { name: '1 group', listOf: () => group(0) },
  { name: '100 groups', listOf: (i) => group(i % 100) },
  { name: '10,000 groups', listOf: group },
  { name: '1 group with a limit', listOf: () => limitedGroup(0), ofGroups: OPEN },
  { name: '100 groups with a limit each', listOf: (i) => limitedGroup(i % 100), ofGroups: OPEN },
  { name: '10,000 groups with a limit each', listOf: limitedGroup, ofGroups: OPEN },
  {
    name: '1 group, beside 10,000 that their limits stop',
    listOf: () => limitedGroup(0),
    ofGroups: limitOfGroups(1, new Map([[group(0).name, WAITERS]])),
    stopped: 10_000,
  },
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

async function measure({ listOf, ofGroups, stopped = 0 }, redisProgram) {
  const redis = await RedisServer.start(redisProgram);
  const limits = {
    ...keyLimits(3_600_000, 1, ofGroups && [ofGroups]),
    maxRequestsInQueue: WAITERS + stopped,
  };
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
  const joinAll = async (count, list) => {
    for (let joined = 0; joined < count; joined += JOINING_AT_ONCE) {
      const joining = Array.from({ length: JOINING_AT_ONCE }, (_, i) => ({
        requestId: randomUUID(),
        request: { canWait: true, list: list(joined + i) },
      }));
      const verdicts = await check(joining);
      if (verdicts.some((verdict) => verdict < 2)) throw new Error('a check does not wait');
    }
  };
  await approveUpTo(1);
  await stopGroups(stopped, { check, approveUpTo, joinAll });
  const used = Number(await redis.client.hget(names.state, 'approved'));

  const empty = { micros: await redis.cpuMicros(), bytes: await redis.usedBytes() };
  await joinAll(WAITERS, listOf);
  const crowded = { micros: await redis.cpuMicros(), bytes: await redis.usedBytes() };
  for (let i = 1; i <= APPROVED; i += 1) await approveUpTo(used + i);
  const singly = { micros: await redis.cpuMicros() };
  for (let i = TOGETHER; i <= APPROVED; i += TOGETHER) await approveUpTo(used + APPROVED + i);
  const together = { micros: await redis.cpuMicros() };
  await redis.resetStatistics();
  for (let i = 1; i <= APPROVED_COLD; i += 1) {
    await delay(COLD_MILLIS);
    await approveUpTo(used + 2 * APPROVED + i);
  }
  const microsCold = await redis.microsPerScriptCall();
  const approved = Number(await redis.client.hget(names.state, 'approved')) - used;
  if (approved !== 2 * APPROVED + APPROVED_COLD) throw new Error(`${approved} are approved`);
  await redis.stop();
  return {
    bytes: (crowded.bytes - empty.bytes) / WAITERS,
    microsToJoin: (crowded.micros - empty.micros) / WAITERS,
    microsSingly: (singly.micros - crowded.micros) / APPROVED,
    microsTogether: (together.micros - singly.micros) / APPROVED,
    microsCold,
  };
}

/** Each of these groups has what its limit allows, and a waiter. */
async function stopGroups(count, { check, approveUpTo, joinAll }) {
  if (count === 0) return;
  const ofNumber = (i) => limitedGroup(1 + i);
  for (let i = 0; i < count; i += JOINING_AT_ONCE) {
    const checks = Array.from({ length: JOINING_AT_ONCE }, (_, j) => ({
      requestId: randomUUID(),
      request: { canWait: false, list: ofNumber(i + j) },
    }));
    const verdicts = await check(checks, 1 + i + JOINING_AT_ONCE);
    if (verdicts.some((verdict) => verdict !== 1)) throw new Error('a check is not approved');
  }
  await joinAll(count, ofNumber);
  for (let i = 1; i <= STOPPING_CALLS; i += 1) await approveUpTo(1 + count + i);
}
