import { UNKNOWN_HISTORY } from '../../src/redis/caller-history.js';

/** What a script is told of the replica that calls it, without its limits. */
export const SCRIPT_CALLER = {
  replicaId: 'r1',
  leaseMillis: 5000,
  wakeArgument: 'PUBLISH :wake',
  maxIdsPerKey: 1000,
  maxHoldsPerKey: 100,
  maxGroupsPerKey: 100,
  historyOf: () => UNKNOWN_HISTORY,
  timeOf: () => 0,
  observer: { unclaimed: () => undefined },
};
