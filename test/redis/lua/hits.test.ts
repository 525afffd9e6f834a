import { StoreFullError } from '../../../src/limiter/errors.js';
import { idsOfHits } from '../../../src/limiter/hits.js';
import { type CheckBatch, VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { ScriptHarness, type TestReplica } from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { whileFull } from '../../support/while-full.js';

/** More ids than one call of Redis can take. */
const SEVERAL_CHUNKS = 2500;

const redis = useRedis();

let key: ScriptHarness;
let replica: TestReplica;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  replica = key.replica('r1', { limits: { maxRequests: 5 } });
});

describe('a check with hits', () => {
  test('leaves an id for each hit, and nothing else than other checks', async () => {
    expect(await replica.checkHits('a', 3)).toEqual('approved');
    expect(await key.stored()).toMatchObject({
      state: { approved: 3, denied: 0 },
      requests: ['a', 'a#2', 'a#3'],
      pastRequests: ['a', 'a#2', 'a#3'],
      expiry: { state: 11_000, requests: 11_000 },
    });
  });

  test('leaves no id if there is not room for all hits', async () => {
    await replica.check(['a', 'b', 'c']);
    expect(await replica.checkHits('d', 3)).toEqual('denied');
    expect(await key.stored()).toMatchObject({
      state: { approved: 3, denied: 1 },
      requests: ['a', 'b', 'c'],
    });
    expect(await replica.checkHits('e', 2)).toEqual('approved');
  });

  test('gets "key full" for too many ids only if the maximum has room for all hits', async () => {
    const small = key.replica('r1', { limits: { maxRequests: 5 }, maxIdsPerKey: 4 });
    expect(await small.checkHits('a', 5)).toBe('key full');
    expect(await small.checkHits('b', 6)).toBe('denied');
    expect(await small.checkHits('c', 3)).toBe('approved');
    expect(await small.checkHits('d', 2)).toBe('key full');
    expect(await small.checkHits('e', 3)).toBe('denied');
    expect(await key.stored()).toMatchObject({ state: { approved: 3, denied: 2 } });
  });

  test('takes more ids than one call of Redis can take', async () => {
    const large = key.replica('r1', { limits: { maxRequests: SEVERAL_CHUNKS + 1 } });
    expect(await large.checkHits('a', SEVERAL_CHUNKS)).toBe('approved');
    expect(await large.checkHits('b', 2)).toBe('denied');
    const { state, requests } = await key.stored();
    expect(state).toMatchObject({ approved: SEVERAL_CHUNKS });
    expect(requests).toEqual(idsOfHits('a', SEVERAL_CHUNKS).sort());
    expect(await large.release('a', SEVERAL_CHUNKS)).toBe(true);
    expect(await key.stored()).toMatchObject({ state: { approved: 0 }, requests: [] });
  });

  test.each([
    ['are longer than a lease', 4000],
    ['are shorter than a lease', 100],
  ])('is remembered with all of its ids if three windows %s', async (_which, windowMillis) => {
    const other = key.replica('r1', { limits: { windowMillis, maxRequests: 5 } });
    await other.checkHits('a', 3);
    await key.setTime(windowMillis);
    await other.check(['b']);
    const { requests, pastRequests } = await key.stored();
    expect(requests).toEqual(['b']);
    expect(pastRequests).toEqual(expect.arrayContaining(['a', 'a#2', 'a#3']));
    await key.pastExpiry();
  });

  test('of a key with waiters is denied', async () => {
    await replica.checkHits('a', 5);
    await replica.checkOrWait(['b']);
    await key.setTime(1000);
    expect(await replica.checkHits('c', 5)).toBe('denied');
    expect(await key.stored()).toMatchObject({ requests: ['b'], queue: [] });
    expect(await replica.checkHits('d', 4)).toBe('approved');
  });
});

describe('a check with hits that is sent again', () => {
  let again: TestReplica;
  beforeEach(() => {
    again = key.replica('r1', { limits: { maxRequests: 5 }, guard: sentAgain });
  });

  test.each([0, 1000])('takes no second approvals, %d ms later', async (millis) => {
    await replica.checkHits('a', 3);
    await key.setTime(millis);
    await replica.check(['b']);
    const before = await key.stored();
    expect(await again.checkHits('a', 3)).toBe('approved');
    expect(await key.stored()).toMatchObject({
      state: { approved: before.state!.approved, denied: 0 },
      requests: before.requests,
    });
  });

  test('is answered by its first id if the window is full, or if other ids were released', async () => {
    await replica.checkHits('a', 3);
    await replica.release('a#2');
    await replica.check(['b', 'c', 'd']);
    expect(await again.checkHits('a', 3)).toBe('approved');
    await replica.release('a', 3);
    expect(await again.checkHits('a', 3)).toBe('approved');
    expect(await key.stored()).toMatchObject({ requests: ['b', 'c', 'd'] });
  });

  test('is decided again if it was not approved, and no second denial is counted', async () => {
    await replica.check(['b', 'c', 'd']);
    await replica.checkHits('a', 3);
    expect(await again.checkHits('a', 3)).toBe('denied');
    expect(await key.stored()).toMatchObject({ state: { approved: 3, denied: 1 } });
    await replica.release('b');
    expect(await again.checkHits('a', 3)).toBe('approved');
    expect(await key.stored()).toMatchObject({ requests: ['a', 'a#2', 'a#3', 'c', 'd'] });
  });
});

describe('a release with hits', () => {
  test('removes the ids that are left, and remembers all of them', async () => {
    await replica.checkHits('a', 3);
    await replica.check(['b']);
    await replica.release('a#2');
    expect(await replica.release('a', 3)).toBe(true);
    expect(await replica.release('a', 3)).toBe(false);
    expect(await key.stored()).toMatchObject({
      state: { approved: 1 },
      requests: ['b'],
      pastRequests: ['a', 'a#2', 'a#3', 'b'],
    });
  });

  test('serves as many waiters, in their order', async () => {
    await replica.checkHits('a', 2);
    await replica.check(['b', 'c', 'd']);
    await replica.checkOrWait(['e', 'f', 'g']);
    expect(await replica.release('a', 2)).toBe(true);
    expect(await key.stored()).toMatchObject({
      state: { approved: 5 },
      requests: ['b', 'c', 'd', 'e', 'f'],
      queue: [['g@r1', 3]],
    });
  });

  test('many times leaves no more ids than three sets may hold', async () => {
    const small = key.replica('r1', { limits: { windowMillis: 60_000 }, maxIdsPerKey: 5 });
    for (let i = 0; i < 20; i += 1) {
      await small.checkHits(`id${i}`, 2);
      expect(await small.release(`id${i}`, 2)).toBe(true);
      for (const name of key.names.pastRequests) {
        expect(await redis.client.scard(name)).toBeLessThanOrEqual(5);
      }
    }
    expect((await key.stored()).pastRequests).toEqual(expect.arrayContaining(['id19', 'id19#2']));
  });
});

describe('batches of one call', () => {
  const batch = (id: string, hits = 1, names = key.names): CheckBatch => ({
    names,
    hits,
    overrides: { maxRequests: undefined, maxRequestsInQueue: undefined },
    waiting: undefined,
    checks: [{ requestId: id, canWait: false }],
  });
  const { approved, denied } = VERDICT;

  test('with and without hits are decided in their order', async () => {
    const replies = await replica.scripts.check([
      batch('a'),
      batch('b', 2),
      batch('c', 3),
      batch('d', 2),
      batch('e'),
    ]);
    expect(replies).toMatchObject([
      { approved: 1, verdicts: [approved] },
      { approved: 3, verdicts: [approved] },
      { approved: 3, verdicts: [denied] },
      { approved: 5, verdicts: [approved] },
      { approved: 5, verdicts: [denied] },
    ]);
  });

  test('with hits of a broken key affect no other batch', async () => {
    const broken = await ScriptHarness.create(redis.client);
    await redis.client.set(broken.names.state, 'not ours', 'EX', 60);
    const [failure, other] = await replica.scripts.check([
      batch('a', 2, broken.names),
      batch('b', 2),
    ]);
    expect(failure).toMatchObject({ message: expect.stringMatching(/^WRONGTYPE /) as unknown });
    expect(other).toMatchObject({ verdicts: [approved] });
  });

  test('with hits of a new key fail as a whole in a full Redis', async () => {
    const [reply] = await whileFull(redis.client, () => replica.scripts.check([batch('a', 3)]));
    expect(reply).toBeInstanceOf(StoreFullError);
    expect(await key.stored()).toMatchObject({ state: undefined, requests: [] });
  });

  test('with hits of an existing key are decided as a whole in a full Redis', async () => {
    const large = key.replica('r1', { limits: { maxRequests: SEVERAL_CHUNKS + 1 } });
    await large.check(['a']);
    const [reply] = await whileFull(redis.client, () =>
      large.scripts.check([batch('b', SEVERAL_CHUNKS)]),
    );
    expect(reply).toMatchObject({ verdicts: [approved], approved: SEVERAL_CHUNKS + 1 });
    expect((await key.stored()).requests).toHaveLength(SEVERAL_CHUNKS + 1);
  });
});

test('a withdrawal takes all ids of a check that may have been approved', async () => {
  await replica.checkHits('a', 3);
  await replica.check(['b']);
  await replica.withdraw(idsOfHits('a', 3));
  expect(await key.stored()).toMatchObject({ state: { approved: 1 }, requests: ['b'] });
});
