import fc from 'fast-check';

import { FIXED_WINDOW, ownLimit } from '../../../../src/limiter/limits.js';
import { type KeyNames, KeyNaming, storedNames } from '../../../../src/redis/shared/key-names.js';

const naming = new KeyNaming('sluice:');

/** Any string, often with characters that names encode. */
const anyKey = fc.string({
  minLength: 1,
  unit: fc.oneof(
    fc.constantFrom('{', '}', '%', '%7B', '%7D', '%25'),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
});

/**
 * The part of a name that Redis Cluster hashes:
 * https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags
 */
function hashTagOf(name: string): string {
  const open = name.indexOf('{');
  if (open === -1) return name;
  const close = name.indexOf('}', open + 1);
  return close === -1 || close === open + 1 ? name : name.slice(open + 1, close);
}

function namesIn(names: KeyNames): string[] {
  const { state, requests, queue, waiting, replicas, pastRequests, wakeChannel, leader } = names;
  return [state, requests, queue, waiting, replicas, ...pastRequests, wakeChannel, leader];
}

function hashTagsOf(key: string): string[] {
  return namesIn(naming.namesOf(key)).map(hashTagOf);
}

describe('namesOf', () => {
  test('puts the key into the hash tag', () => {
    expect(namesIn(naming.namesOf('user-7'))).toEqual([
      'sluice:{user-7}',
      'sluice:{user-7}:requests',
      'sluice:{user-7}:queue',
      'sluice:{user-7}:waiting',
      'sluice:{user-7}:replicas',
      'sluice:{user-7}:requests:1',
      'sluice:{user-7}:requests:2',
      'sluice:{user-7}:requests:3',
      'sluice:{user-7}:wake',
      'sluice:{user-7}:leader',
    ]);
  });

  test.each([
    ['}x', '%7Dx'],
    ['{', '%7B'],
    ['}', '%7D'],
    ['{}', '%7B%7D'],
    ['%', '%25'],
    ['%7B', '%257B'],
    ['a/b c', 'a/b c'],
    ['🚰', '🚰'],
  ])('tags %j as %j', (key, tag) => {
    expect(naming.namesOf(key).state).toBe(`sluice:{${tag}}`);
    expect(new Set(hashTagsOf(key))).toEqual(new Set([tag]));
  });

  test('gives all names of a key the same hash tag, which is not empty', () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const tags = new Set(hashTagsOf(key));
        expect(tags.size).toBe(1);
        expect([...tags][0]).not.toBe('');
      }),
    );
  });

  test('gives different keys different names', () => {
    fc.assert(
      fc.property(anyKey, anyKey, (a, b) => {
        fc.pre(a !== b);
        const namesOfA = new Set(namesIn(naming.namesOf(a)));
        expect(namesIn(naming.namesOf(b)).filter((name) => namesOfA.has(name))).toEqual([]);
      }),
    );
  });

  test('starts every name with the prefix', () => {
    for (const name of namesIn(new KeyNaming('other-').namesOf('k'))) {
      expect(name).toMatch(/^other-\{k\}/);
    }
  });
});

test('keyOf finds any key in the name of its state, whatever the prefix', () => {
  fc.assert(
    fc.property(anyKey, fc.stringMatching(/^[^{}]{1,20}$/), (key, prefix) => {
      const prefixed = new KeyNaming(prefix);
      expect(prefixed.keyOf(prefixed.namesOf(key).state)).toBe(key);
    }),
  );
});

describe('namesOnEachShard', () => {
  /** Nobody asks the connections. */
  const NONE = undefined as never;
  const found = (shards: readonly string[]) => {
    let asked = 0;
    const primaries = (): ReadonlyMap<string, never> =>
      new Map(shards.map((shard) => [shard, NONE]));
    const shardOf = (): string => shards[asked++ % shards.length] ?? 'unknown';
    return { names: naming.namesOnEachShard({ primaries, shardOf }), asked };
  };

  test('finds a name on each shard, and then looks no further', () => {
    const { names, asked } = found(['one', 'two', 'three']);
    expect(names).toEqual(['0', '1', '2'].map((key) => naming.namesOf(key).state));
    expect(asked).toBe(3);
    expect(found(['one']).asked).toBe(1);
  });

  test('finds one name while no shard is known', () => {
    expect(found([]).names).toHaveLength(1);
  });
});

test.each([
  ['sluice:', 'sluice:{*}'],
  ['a*b', 'a\\*b{*}'],
  ['a?', 'a\\?{*}'],
  ['[a-z]', '\\[a\\-z\\]{*}'],
  ['^', '\\^{*}'],
  ['back\\slash', 'back\\\\slash{*}'],
])('statePattern takes the prefix %j literally', (prefix, pattern) => {
  expect(new KeyNaming(prefix).statePattern).toBe(pattern);
});

test('the names of a key depend on the algorithms of its limits', () => {
  const bucket = { algorithm: { name: 'token_bucket', burst: 1 } } as const;
  const namesWith = (limits: Parameters<typeof storedNames>[1]): string[] =>
    storedNames(naming.namesOf('k'), limits).map(({ name }) => name.slice('sluice:{k}'.length));
  const fixed = namesWith([ownLimit(1000, 1), { name: 'a', algorithm: FIXED_WINDOW }]);
  expect(fixed).toContain(':limit:a');
  expect(namesWith([bucket, { name: 'a', ...bucket }])).toEqual(
    fixed.flatMap((name) =>
      name === ':limit:a' ? [':ids:0', ':ids:1', ':limit:a:0', ':limit:a:1'] : [name],
    ),
  );
});
