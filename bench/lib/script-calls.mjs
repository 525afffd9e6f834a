import { randomUUID } from 'node:crypto';

import { eventLoop } from '../../dist/common/ticks.js';
import { ownLimit } from '../../dist/limiter/limits.js';
import { KeyNaming } from '../../dist/redis/shared/key-names.js';
import { encodeChecks } from '../../dist/redis/scripts/check-codec.js';
import { Scripts } from '../../dist/redis/scripts/scripts.js';

/** The names of the service's keys. */
export const naming = new KeyNaming('sluice:');

/** The limits of a key, with a queue that is long enough. */
export function keyLimits(windowMillis, maximum, further = [], algorithm = undefined) {
  const limits = [ownLimit(windowMillis, maximum, algorithm), ...further];
  return { limits, maxRequestsInQueue: 400 };
}

/** The service's own scripts, called once each on one connection, for keys with these limits. */
export function scriptsOn(client, limits) {
  const connections = {
    commands: client,
    isCluster: false,
    slotOf: () => 0,
    shardOf: () => '',
    nodeAt: () => client,
    primaries: () => new Map([['', client]]),
  };
  const logger = { info: () => undefined };
  const guard = { run: (call) => call.send(1, () => true) };
  return new Scripts(
    { connections, ticks: eventLoop, clock: performance, logger },
    guard,
    callerWith(limits),
  );
}

/**
 * Checks a key by a call of its own.
 * @throws Error if it is not approved
 */
export async function approvedAlone(scripts, key, { hits, holdMillis } = {}) {
  const [reply] = await scripts.check([
    {
      names: naming.namesOf(key),
      overrides: { maxRequests: undefined, maxRequestsInQueue: undefined },
      checks: [{ requestId: randomUUID(), request: { canWait: false, hits, holdMillis } }],
      arePlain: hits === undefined && holdMillis === undefined,
    },
  ]);
  if (reply instanceof Error) throw reply;
  if (reply.verdicts[0] !== 1) throw new Error(`not approved: ${reply.verdicts[0]}`);
}

/** Checks of a key that ask for nothing of their own. */
export function plainBatch(names, requestIds) {
  const checks = requestIds.map((requestId) => ({ requestId, request: { canWait: false } }));
  return { names, overrides: {}, checks, arePlain: true };
}

/** The words of the service's call of `check.lua`, as a function that Redis has loaded. */
export function checkCommand({ library }, batches, limits) {
  const { keys, args } = encodeChecks(callerWith(limits), batches, {
    isSentAgain: false,
    mayBeFull: false,
  });
  return ['FCALL', library.name, String(keys.length), ...keys, ...args.map(String)];
}

function callerWith(limits) {
  return {
    limitsOf: () => limits,
    replicaId: 'bench',
    // No replica seems dead, however long a measurement takes.
    leaseMillis: 600_000,
    maxIdsPerKey: 1_000_000,
    maxHoldsPerKey: 1_000_000,
    maxGroupsPerKey: 1_000_000,
    wakeArgument: naming.wakeArgument({ isCluster: false }),
    historyOf: () => '0:0:0',
    timeOf: () => 0,
  };
}
