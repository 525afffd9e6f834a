import { KeyNaming } from '../../dist/redis/key-names.js';
import { encodeChecks } from '../../dist/redis/scripts/check-codec.js';
import { Scripts } from '../../dist/redis/scripts/scripts.js';

/** The names of the service's keys. */
export const naming = new KeyNaming('sluice:');

/** The service's own scripts, called once each, for keys with these limits. */
export function scriptsOn(client, limits) {
  return new Scripts(client, { run: (call) => call.send(1, () => true) }, callerWith(limits));
}

/** The words of the service's call of `check.lua`, once Redis has loaded the script. */
export function checkCommand({ sha1 }, batches, limits) {
  const { keys, args } = encodeChecks(callerWith(limits), batches, {
    isSentAgain: false,
    mayBeFull: false,
  });
  return ['EVALSHA', sha1, String(keys.length), ...keys, ...args.map(String)];
}

function callerWith(limits) {
  return {
    limitsOf: () => limits,
    replicaId: 'bench',
    leaseMillis: 5000,
    maxIdsPerKey: 1_000_000,
    wakeArgument: naming.wakeArgument({ isCluster: false }),
    historyOf: () => '0:0:0',
  };
}
