import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { checkBatchOf, TEST_LIMITS } from '../../support/script-harness.js';
import { scriptsOfManyKeys } from '../../support/scripts-of-many-keys.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const LIMITS = { ...TEST_LIMITS, windowMillis: 600_000, maxRequests: 1 };
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
    const scripts = scriptsOfManyKeys(redis.client, () => LIMITS, {
      leaseMillis: 600_000,
      wakeArgument: naming.wakeArgument({ isCluster: false }),
    });
    const keys = ['%', '%7B', '*', ':queue', 'a', 'a/b c', '{', '}x', '🚰'];
    for (const key of keys) {
      // One check is approved and one waits, so that each key has all its names.
      const checks = ['a', 'b'].map((requestId) => ({ requestId, canWait: true }));
      await scripts.check([checkBatchOf(naming.namesOf(key), checks)]);
    }
    const taken = `${unique}${lookalike}{k}`;
    await redis.client.set(taken, '');
    // Without escapes, the prefix would be a pattern that matches other names.
    expect(await scan(`${unique}${awkward}{*}`)).toContain(taken);

    const found = await scan(naming.statePattern);
    expect(found.map((name) => naming.keyOf(name)).sort()).toEqual(keys.sort());
  },
);
