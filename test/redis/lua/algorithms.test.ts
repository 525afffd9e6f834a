import { type Algorithm, ownLimit } from '../../../src/limiter/limits.js';
import { encodeLimits } from '../../../src/redis/scripts/limits-codec.js';
import type { FurtherLimit } from '../../support/limits.js';
import {
  type ReplicaOptions,
  TEST_LIMITS,
  type TestReplica,
  useScriptHarness,
} from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

const SLIDING: Algorithm = { name: 'sliding_window', steps: 10 };

function bucket(burst: number): Algorithm {
  return { name: 'token_bucket', burst };
}

function withOwn(
  algorithm: Algorithm,
  maxRequests: number,
  { limits, ...options }: ReplicaOptions = {},
): TestReplica {
  const all = { algorithm, maxRequests, maxRequestsInQueue: 20, ...limits };
  return key.replica('r1', { ...options, limits: all });
}

/** The ids of a limit, by generation. */
function idsOf(name?: string): Promise<Record<string, string>[]> {
  return Promise.all(key.names.recentIds(name).map((each) => redis.client.hgetall(each)));
}

/** What counts of each limit, to all digits. */
async function counts(): Promise<unknown> {
  const [own, further, approved] = await redis.client.hmget(
    key.names.state,
    'own',
    'further',
    'approved',
  );
  return { own, further, approved };
}

const micros = (millis: number): string => String((key.startMillis + millis) * 1000);

test('a token bucket drains by microseconds, however many calls a millisecond has', async () => {
  const replica = withOwn(bucket(1000), 1_000_000, { limits: { windowMillis: 1000 } });
  await key.setTime(5.4);
  await replica.checkHits('a', 1000);
  await key.setTime(5.5);
  expect(await replica.checkHits('b', 101)).toBe('denied');
  expect(await replica.checkHits('c', 100)).toBe('approved');
  await key.setTime(5.9);
  expect(await replica.checkHits('d', 401)).toBe('denied');
  expect(await replica.checkHits('e', 400)).toBe('approved');
});

describe('ids', () => {
  test('of a sliding window are kept with their steps, and go away with their generation', async () => {
    const replica = withOwn(SLIDING, 9);
    await replica.check(['a']);
    await key.setTime(1099);
    await replica.checkHits('b', 2);
    expect(await idsOf()).toEqual([{ a: '0', b: '10*2' }, {}]);
    await key.setTime(1100);
    await replica.check(['c']);
    expect(await idsOf()).toEqual([{ a: '0', b: '10*2' }, { c: '11' }]);
    await key.setTime(2200);
    await replica.inspect();
    await replica.check(['d']);
    expect(await idsOf()).toEqual([{ d: '22' }, { c: '11' }]);
    await key.setTime(5000);
    await replica.check(['e']);
    expect(await idsOf()).toEqual([{ e: '50' }, {}]);
  });

  test('of a token bucket are kept with their times, and go away with their generation', async () => {
    const replica = withOwn(bucket(5), 9);
    await replica.check(['a']);
    await key.setTime(999);
    await replica.checkHits('b', 2);
    expect(await idsOf()).toEqual([{ a: micros(0), b: `${micros(999)}*2` }, {}]);
    await key.setTime(1000);
    await replica.check(['c']);
    expect(await idsOf()).toEqual([{ a: micros(0), b: `${micros(999)}*2` }, { c: micros(1000) }]);
    await key.setTime(2000);
    await replica.check(['d']);
    expect(await idsOf()).toEqual([{ d: micros(2000) }, { c: micros(1000) }]);
  });

  test.each<[what: string, algorithm: Algorithm]>([
    ['a sliding window', SLIDING],
    ['a token bucket', bucket(9)],
  ])('of %s that Redis has evicted expire when the next approval makes them', async (_, each) => {
    const replica = withOwn(each, 9);
    await replica.check(['a']);
    const before = await key.expiry();
    await key.lose('requests');
    await redis.client.del(...key.names.recentIds(undefined));
    // All of a bucket has drained, so that no more counts than before.
    await key.setTime(500);
    expect(await replica.check(['b'])).toEqual(['approved']);
    expect(await key.expiry()).toEqual(before);
  });

  test.each<[what: string, algorithm: Algorithm]>([
    ['a sliding window', SLIDING],
    ['a token bucket', bucket(2)],
  ])(
    'of a further limit that is %s are under its name, which expires',
    async (_what, algorithm) => {
      const further: FurtherLimit[] = [
        {
          name: 'minute',
          windowMillis: 60_000,
          maximum: 5,
          algorithm,
          counts: 'hits',
          keepsReleased: false,
        },
      ];
      const replica = key.replica('r1', { limits: { maxRequests: 9, further } });
      await replica.check(['a']);
      expect((await idsOf('minute')).map((ids) => Object.keys(ids))).toEqual([['a'], []]);
      const [expiresAt] = await key.recentExpiry('minute');
      expect(expiresAt).toBeGreaterThanOrEqual(120_000);
      await replica.release('a');
      expect(await idsOf('minute')).toEqual([{}, {}]);
    },
  );

  test('of a bucket with another window expire after that', async () => {
    await withOwn(bucket(5), 9).check(['a']);
    const longer = withOwn(bucket(5), 9, { limits: { windowMillis: 60_000 } });
    await longer.check(['b']);
    expect(await idsOf()).toEqual([{ a: micros(0), b: micros(0) }, {}]);
    expect((await key.recentExpiry(undefined))[0]).toBeGreaterThanOrEqual(120_000);
  });
});

describe.each<[what: string, algorithm: Algorithm]>([
  ['a sliding window', SLIDING],
  ['a token bucket', bucket(9)],
])('a check of %s that is sent again', (_what, algorithm) => {
  const further: FurtherLimit[] = [
    { name: 'a', windowMillis: 3000, maximum: 9, algorithm, counts: 'hits', keepsReleased: false },
  ];
  const limits = { further };
  const replica = withOwn(algorithm, 9, { limits });
  const again = withOwn(algorithm, 9, { limits, guard: sentAgain });

  test.each([0, 600])('counts its id once, %i ms later', async (millis) => {
    await replica.checkHits('a', 3);
    await key.setTime(millis);
    await replica.check(['b']);
    const before = await counts();
    expect(await again.checkHits('a', 3)).toBe('approved');
    expect(await counts()).toEqual(before);
  });

  test('takes nothing after its release', async () => {
    await replica.checkHits('a', 3);
    expect(await again.release('a')).toBe(true);
    const before = await counts();
    expect(before).toMatchObject({ approved: '0' });
    expect(await again.release('a')).toBe(false);
    expect(await again.checkHits('a', 3)).toBe('approved');
    expect(await counts()).toEqual(before);
  });
});

test('a period of a sliding window begins with its sums as of then', async () => {
  const replica = withOwn(SLIDING, 9);
  await replica.check(['a']);
  await key.setTime(950);
  await replica.check(['b']);
  await key.setTime(1150);
  await replica.settle({}, 0, '');
  await key.setTime(2060);
  await replica.settle({}, 0, '');
  const own = `${key.startMillis + 2000}:20:`;
  expect(await counts()).toEqual({ own, further: '0', approved: '0' });
});

describe('when the clock goes back', () => {
  test('by up to a window, a sliding window moves no step', async () => {
    const replica = withOwn(SLIDING, 2);
    await key.setTime(5000);
    await replica.check(['a']);
    await key.setTime(4000);
    await replica.check(['b']);
    expect(await idsOf()).toEqual([{ a: '0', b: '0' }, {}]);
    expect(await replica.check(['c'])).toEqual(['denied']);
    await key.setTime(6099);
    expect(await replica.check(['c'])).toEqual(['denied']);
    expect(await replica.release('a')).toBe(true);
    await replica.check(['d']);
    await key.setTime(6100);
    expect(await replica.check(['e'])).toEqual(['approved']);
    expect(await replica.check(['f'])).toEqual(['denied']);
  });

  test('by more, all that counts in a sliding window moves into the current step, without ids', async () => {
    const replica = withOwn(SLIDING, 3);
    await key.setTime(5000);
    await replica.check(['a']);
    await key.setTime(5500);
    await replica.check(['b']);
    await key.setTime(4499);
    await replica.check(['c']);
    expect(await replica.release('a')).toBe(false);
    expect(await replica.check(['d'])).toEqual(['denied']);
    expect(await replica.release('c')).toBe(true);
    await replica.check(['d']);
    await key.setTime(4499 + 1099);
    expect(await replica.check(['e'])).toEqual(['denied']);
    await key.setTime(4499 + 1100);
    expect(await replica.check(['e', 'f', 'g', 'h'])).toEqual([
      'approved',
      'approved',
      'approved',
      'denied',
    ]);
  });

  test.each([1, 200, 100_000])('by %i ms, a token bucket drains nothing', async (back) => {
    const replica = withOwn(bucket(2), 10);
    await key.setTime(200_000);
    await replica.checkHits('a', 2);
    await key.setTime(200_000 - back);
    expect(await replica.check(['b'])).toEqual(['denied']);
    await key.setTime(200_000 - back + 99);
    expect(await replica.check(['b'])).toEqual(['denied']);
    await key.setTime(200_000 - back + 100);
    expect(await replica.check(['b', 'c'])).toEqual(['approved', 'denied']);
  });
});

test.each<[what: string, algorithm: Algorithm]>([
  ['a sliding window', SLIDING],
  ['a token bucket', bucket(1)],
])(
  'a key of %s that Redis has lost is full until its waiters knew of room',
  async (_what, algorithm) => {
    const limits = { windowMillis: 20_000 };
    const replica = withOwn(algorithm, 2, { limits, leaseMillis: 60_000 });
    const own = ownLimit(limits.windowMillis, 2, algorithm);
    const known = encodeLimits({
      limits: [own],
      maxRequestsInQueue: TEST_LIMITS.maxRequestsInQueue,
    });
    await key.setTime(300);
    const lost = await replica.settle({ a: 1, b: 2 }, 4700, known);
    expect(lost).toMatchObject({ millisToRoom: 4700, putBack: ['a', 'b'], granted: [] });
    // After the recovery.
    await key.setTime(4999);
    expect(await replica.settle({ a: 1, b: 2 })).toMatchObject({ millisToRoom: 1, granted: [] });
    await key.setTime(5000);
    expect(await replica.settle({ a: 1, b: 2 })).toMatchObject({
      granted: algorithm === SLIDING ? ['a', 'b'] : ['a'],
    });
  },
);

test('waiters of a bucket have room every 20 ms at most, all that are due then', async () => {
  const replica = withOwn(bucket(1), 1000);
  await replica.check(['a']);
  const ids = Array.from({ length: 20 }, (_, i) => `w${i}`);
  await replica.checkOrWait(ids);
  expect(await replica.settle()).toMatchObject({ millisToRoom: 1, granted: [] });
  await key.setTime(1);
  expect(await replica.settle()).toMatchObject({ millisToRoom: 20, granted: ['w0'] });
  await key.setTime(21);
  const granted = ids.slice(1);
  expect(await replica.settle()).toMatchObject({ granted, waiting: 0 });
});
