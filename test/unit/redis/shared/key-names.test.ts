import type { Redis } from 'ioredis';
import { pino } from 'pino';

import { DEFAULT_ALGORITHM } from '../../../../src/limiter/kinds/kinds.js';
import { ownLimit } from '../../../../src/limiter/limits.js';
import { type KeyNames, KeyNaming, storedNames } from '../../../../src/redis/shared/key-names.js';
import { Listing } from '../../../../src/redis/listing.js';
import { CallerHistory, UNKNOWN_HISTORY } from '../../../../src/redis/caller-history.js';
import { ManualClock } from '../../../support/manual-clock.js';
import fc from '../../../support/properties.js';

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
  const { state, requests, queue, records, lapses, ends, replicas, pastRequests } = names;
  const { wakeChannel, leader } = names;
  const stored = [state, requests, queue, records, lapses, ends, replicas, ...pastRequests];
  return [...stored, wakeChannel, leader];
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
      'sluice:{user-7}:records',
      'sluice:{user-7}:lapses',
      'sluice:{user-7}:ends',
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
  const found = (shards: readonly string[]) => {
    let asked = 0;
    const shardOf = (): string => shards[asked++ % shards.length] ?? 'unknown';
    return { names: naming.namesOnEachShard(shards.length, shardOf), asked };
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

test('the names of a key depend on the algorithms of its limits', () => {
  const bucket = { algorithm: { name: 'token_bucket', burst: 1 } } as const;
  const namesWith = (limits: Parameters<typeof storedNames>[1]): string[] =>
    storedNames(naming.namesOf('k'), limits).map(({ name }) => name.slice('sluice:{k}'.length));
  const fixed = namesWith([ownLimit(1000, 1), { name: 'a', algorithm: DEFAULT_ALGORITHM }]);
  expect(fixed).toEqual(expect.arrayContaining([':took:0', ':took:0:a']));
  const ofGroups = { name: 'b', algorithm: DEFAULT_ALGORITHM, perGroup: { maxima: new Map() } };
  expect(namesWith([ownLimit(1000, 1), ofGroups])).toEqual(
    expect.arrayContaining([':groups', ':groups:idle', ':heads:stopped']),
  );
  expect(namesWith([bucket, { name: 'a', ...bucket }])).toEqual(
    fixed.flatMap((name) => (name.startsWith(':took:0') ? [name, name.replace('0', '1')] : [name])),
  );
});

let scans = 0;

/** The number of pages of a listing from SCANs with these cursors. */
async function pagesOf(nextCursor: (cursor: number) => number, longestMillis?: number) {
  scans = 0;
  const scan = (cursor: string) => {
    scans += 1;
    return Promise.resolve([String(nextCursor(Number(cursor))), []]);
  };
  const connections = {
    primaries: () => new Map([['primary', { scan } as unknown as Redis]]),
    slotOf: () => 0,
  };
  const parts = { connections, timeoutMillis: 1000, logger: pino({ level: 'silent' }) };
  const scripts = { inspect: () => Promise.reject(new Error('there is nothing to inspect')) };
  const listing = new Listing(scripts, new KeyNaming('sluice:'), parts, longestMillis);
  let pages = 0;
  for await (const page of listing.pages()) pages += page.length + 1;
  return pages;
}

// The steps before the cycle, and its length.
test.each([
  [0, 1],
  [1, 2],
  [500, 1],
  [500, 333],
  [3, 1000],
])('a listing ends if its cursors repeat in a cycle (%d, %d)', async (before, circle) => {
  const next = (cursor: number) => (cursor < before + circle ? cursor + 1 : before + 1);

  await expect(pagesOf(next)).rejects.toMatchObject({
    reason: 'store_unavailable',
    cause: { message: expect.stringContaining('SCAN has no end after a second cursor') as unknown },
  });
});

// The first, second, fourth ... cursor is compared with those that follow it.
test.each([
  [1, 2],
  [2, 3],
  [3, 6],
])('a cycle of %d cursors is found after %d SCANs', async (circle, expected) => {
  await expect(pagesOf((cursor) => (cursor < circle ? cursor + 1 : 1))).rejects.toThrow();
  expect(scans).toBe(expected);
});

test('a listing ends in time if its cursors never end', async () => {
  await expect(pagesOf((cursor) => cursor + 1, 20)).rejects.toMatchObject({
    cause: { message: 'SCAN has no end after 20 ms' },
  });
});

describe('the history of a caller', () => {
  const LEASE = 3000;
  /** How far Redis's clock is ahead of the replica's. */
  const AHEAD = 1_000_000;

  const clock = new ManualClock(0);
  let isAway = false;
  let rulesLoadedAt = 0;
  let onReady: () => void = () => undefined;
  let primaries = new Map<string, Redis>();
  let history: CallerHistory;

  const server = Object.create(null) as Redis;

  beforeEach(() => {
    isAway = false;
    rulesLoadedAt = clock.now();
    primaries = new Map([['primary', server]]);
    history = new CallerHistory({
      connections: {
        primaries: () => primaries,
        shardOf: (name) => name,
        onReady: (callback) => (onReady = callback),
      },
      clock,
      rulesLoadedAt: () => rulesLoadedAt,
      leaseMillis: LEASE,
      readTime: () =>
        isAway ? Promise.reject(new Error('down')) : Promise.resolve(clock.now() + AHEAD),
    });
  });

  afterEach(() => {
    history.dispose();
  });

  const known = (): number[] => history.of('primary').split(':').map(Number);

  test('nothing is known before Redis has answered, or about an unknown shard', async () => {
    expect(history.of('another')).toBe(UNKNOWN_HISTORY);
    isAway = true;
    primaries.set('silent', server);
    await clock.advance(LEASE);
    expect(history.of('silent')).toBe(UNKNOWN_HISTORY);
  });

  test("all times are in Redis's time", async () => {
    const begun = clock.now();
    await clock.advance(1);
    expect(known()).toEqual([begun, begun, begun].map((millis) => millis + AHEAD));
  });

  test('contact goes on while Redis answers, even without requests', async () => {
    await clock.advance(1);
    const [, since] = known();
    await clock.advance(2 * LEASE);
    const [, sinceThen, until] = known();
    expect(sinceThen).toBe(since);
    expect(until).toBeGreaterThan(clock.now() + AHEAD - LEASE / 2);
  });

  test('contact begins again after half a lease without an answer of Redis, and no sooner', async () => {
    await clock.advance(1);
    const [, since] = known();
    isAway = true;
    await clock.advance(LEASE / 3);
    isAway = false;
    onReady();
    await clock.advance(1);
    expect(known()[1]).toBe(since);
    isAway = true;
    await clock.advance(LEASE / 2);
    isAway = false;
    onReady();
    await clock.advance(1);
    expect(known()[1]).toBeGreaterThan(clock.now() + AHEAD - 10);
  });

  test('rules that are loaded later are known at once', async () => {
    await clock.advance(10);
    rulesLoadedAt = clock.now();
    expect(known()[0]).toBe(clock.now() + AHEAD);
  });

  test('each shard has its own history, and a removed shard has none', async () => {
    primaries.set('second', server);
    await clock.advance(LEASE);
    const [, since] = history.of('second').split(':').map(Number);
    expect(since).toBeGreaterThan(known()[1]!);
    primaries.delete('second');
    await clock.advance(LEASE);
    expect(history.of('second')).toBe(UNKNOWN_HISTORY);
  });

  test('a history that is disposed of asks no more', () => {
    expect(clock.isAwaited).toBe(true);
    history.dispose();
    expect(clock.isAwaited).toBe(false);
  });
});
