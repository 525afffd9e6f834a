import { UNKNOWN_HISTORY } from '../../../src/redis/caller-history.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { Scripts } from '../../../src/redis/scripts/scripts.js';
import { TEST_LIMITS } from '../../support/script-harness.js';
import { unguarded } from '../../support/unguarded.js';
import { scriptClientParts } from '../../support/script-client-parts.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { keyLimits } from '../../support/limits.js';

const LIMITS = keyLimits({ ...TEST_LIMITS, windowMillis: 600_000, maxRequests: 1 });
const redis = useRedis();

async function scan(pattern: string): Promise<string[]> {
  const names = new Set<string>();
  for await (const some of redis.client.scanStream({ match: pattern })) {
    for (const name of some as string[]) names.add(name);
  }
  return [...names];
}

test.each([
  ['a*b', 'axb'],
  ['a?b', 'axb'],
  ['[a-z]', 'k'],
  ['[^a]', 'k'],
  ['back\\slash', 'backslash'],
  ['\\*', '*'],
])(
  'SCAN finds the state of every key under the prefix %j, and neither their other names nor %j',
  async (awkward, lookalike) => {
    const unique = uniqueKey();
    const naming = new KeyNaming(unique + awkward);
    const scripts = new Scripts(scriptClientParts(redis.client), unguarded, {
      limitsOf: () => LIMITS,
      replicaId: 'r1',
      leaseMillis: 600_000,
      maxIdsPerKey: 1000,
      maxHoldsPerKey: 100,
      wakeArgument: naming.wakeArgument({ isCluster: false }),
      historyOf: () => UNKNOWN_HISTORY,
    });
    const overrides = { maxRequests: undefined, maxRequestsInQueue: undefined };
    const keys = ['%', '%7B', '*', ':queue', 'a', 'a/b c', '{', '}x', '🚰'];
    for (const key of keys) {
      // One check is approved and one waits, so that each key has all its names.
      const checks = ['a', 'b'].map((requestId) => ({ requestId, canWait: true }));
      const names = naming.namesOf(key);
      await scripts.check([{ names, overrides, waiting: undefined, checks }]);
    }
    const taken = `${unique}${lookalike}{k}`;
    await redis.client.set(taken, '');
    // Without escapes, the prefix would be a pattern that matches other names.
    expect(await scan(`${unique}${awkward}{*}`)).toContain(taken);

    const found = await scan(naming.statePattern);
    expect(found.map((name) => naming.keyOf(name)).sort()).toEqual(keys.sort());
  },
);
