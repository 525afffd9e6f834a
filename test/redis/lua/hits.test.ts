import { StoreFullError } from '../../../src/limiter/errors.js';
import { type CheckBatch, VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { ScriptHarness, type TestReplica } from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';
import { whileFull } from '../../support/while-full.js';

const MANY = 1_000_000_000;

const redis = useRedis();

let key: ScriptHarness;
let replica: TestReplica;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  replica = key.replica('r1', { limits: { maxRequests: 5 } });
});

/** The stored hits of the approvals that have more than one. */
const storedHits = (): Promise<Record<string, string>> => redis.client.hgetall(key.names.hits);

describe('a check with hits', () => {
  test('leaves its id and the number of its hits', async () => {
    expect(await replica.checkHits('a', 3)).toEqual('approved');
    expect(await replica.check(['b'])).toEqual(['approved']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 4, denied: 0 },
      requests: ['a', 'b'],
    });
    expect(await storedHits()).toEqual({ a: '3' });
    expect(await redis.client.pexpiretime(key.names.hits)).toBe(
      await redis.client.pexpiretime(key.names.requests),
    );
  });

  test('leaves a plain key when its window has ended', async () => {
    await replica.checkHits('a', 3);
    expect(await redis.client.hget(key.names.state, 'hits')).toBe('1');
    await key.setTime(1000);
    await replica.check(['b']);
    expect(await redis.client.hget(key.names.state, 'more')).toBe(null);
    expect(await storedHits()).toEqual({});
  });

  test('takes nothing if there is not room for all hits', async () => {
    await replica.check(['a', 'b', 'c']);
    expect(await replica.checkHits('d', 3)).toEqual('denied');
    expect(await key.stored()).toMatchObject({
      state: { approved: 3, denied: 1 },
      requests: ['a', 'b', 'c'],
    });
    expect(await storedHits()).toEqual({});
    expect(await replica.checkHits('e', 2)).toEqual('approved');
  });

  test('gets "too many hits" if it asks for more than the maximum, which counts nothing', async () => {
    expect(await replica.checkHits('a', 6)).toBe('too many hits');
    expect(await replica.checkHits('b', 6, { canWait: true })).toBe('too many hits');
    expect(await replica.checkHits('c', 6, { maxRequests: 6 })).toBe('approved');
    expect(await key.stored()).toMatchObject({ state: { approved: 6, denied: 0 }, queue: [] });
  });

  test('costs as much as any other, however many hits it has', async () => {
    const large = key.replica('r1', { limits: { maxRequests: MANY } });
    expect(await large.checkHits('a', MANY - 1)).toBe('approved');
    expect(await large.checkHits('b', 2)).toBe('denied');
    expect(await key.stored()).toMatchObject({ state: { approved: MANY - 1 }, requests: ['a'] });
    expect(await large.release('a')).toBe(true);
    expect(await key.stored()).toMatchObject({ state: { approved: 0 }, requests: [] });
    expect(await storedHits()).toEqual({});
  });

  test('counts as one id towards the most ids of a set', async () => {
    const small = key.replica('r1', { limits: { maxRequests: 100 }, maxIdsPerKey: 2 });
    expect(await small.checkHits('a', 50)).toBe('approved');
    expect(await small.check(['b', 'c'])).toEqual(['approved', 'key full']);
    expect(await small.checkHits('d', 49)).toBe('key full');
    expect(await small.checkHits('e', 50)).toBe('denied');
    expect(await key.stored()).toMatchObject({ state: { approved: 51, denied: 1 } });
  });

  test.each([
    ['are longer than a lease', 4000],
    ['are shorter than a lease', 100],
  ])('counts in its window only, if three windows %s', async (_which, windowMillis) => {
    const other = key.replica('r1', { limits: { windowMillis, maxRequests: 5 } });
    await other.checkHits('a', 3);
    await key.setTime(windowMillis);
    expect(await other.check(['b'])).toEqual(['approved']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 1 },
      requests: ['b'],
      pastRequests: expect.arrayContaining(['a']) as unknown,
    });
    expect(await storedHits()).toEqual({});
    expect(await other.release('a')).toBe(false);
    await key.pastExpiry();
  });
});

describe('a waiter with hits', () => {
  beforeEach(async () => {
    await replica.check(['a', 'b', 'c']);
    await replica.checkHits('w', 4, { canWait: true });
  });

  test('is shown in the queue with them', async () => {
    const [entry] = await redis.client.lrange(key.names.queue, 0, -1);
    expect(entry).toMatch(/^\d+:w\*4@r1$/);
    expect((await replica.examine())?.queue).toHaveLength(1);
  });

  test('is not overtaken by others that need less', async () => {
    expect(await replica.check(['d'])).toEqual(['denied']);
    expect(await replica.checkOrWait(['e'])).toEqual([2]);
    await replica.release('a');
    expect(await replica.check(['f'])).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 2 },
      queue: [
        ['w@r1', 1],
        ['e@r1', 2],
      ],
    });
  });

  test('is not overtaken either if the version before has noted that it does not fit', async () => {
    await replica.release('a');
    await redis.client.hset(key.names.state, { serving: 0, blocked: 1 });
    expect(await replica.check(['f'])).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({ state: { isServing: true }, queue: [['w@r1', 1]] });
    expect(await redis.client.hget(key.names.state, 'blocked')).toBe('0');
  });

  test('is approved as soon as all hits are free, and then those behind it', async () => {
    await replica.checkOrWait(['e', 'f']);
    await replica.release('a');
    expect((await key.stored()).requests).toEqual(['b', 'c']);
    await replica.release('b');
    expect(await key.stored()).toMatchObject({
      state: { approved: 5 },
      requests: ['c', 'w'],
      queue: [
        ['e@r1', 2],
        ['f@r1', 3],
      ],
    });
    expect(await storedHits()).toEqual({ w: '4' });
    await replica.release('w');
    expect(await key.stored()).toMatchObject({ state: { approved: 3 }, queue: [] });
  });

  test('makes way for the next when it is withdrawn', async () => {
    await replica.checkOrWait(['e']);
    await replica.withdraw(['w']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 4 },
      requests: ['a', 'b', 'c', 'e'],
      queue: [],
    });
    expect(await replica.check(['f'])).toEqual(['approved']);
  });

  test('that needs more than a maximum that was lowered gets a window for itself', async () => {
    await replica.check(['d'], { maxRequests: 2 });
    await replica.checkOrWait(['e']);
    await key.setTime(1000);
    expect((await replica.settle()).granted).toEqual(['w']);
    expect((await key.stored()).state).toMatchObject({ approved: 4, max: 2 });
    await key.setTime(2000);
    expect((await replica.settle()).granted).toEqual(['e']);
  });

  test('of a dead replica does not keep newcomers out', async () => {
    const dead = key.replica('dead', { limits: { maxRequests: 5, windowMillis: 60_000 } });
    await replica.withdraw(['w']);
    await dead.checkHits('x', 4, { canWait: true });
    expect(await replica.check(['f'])).toEqual(['denied']);
    await key.setTime(6000);
    const living = key.replica('r1', {
      limits: { maxRequests: 5 },
      history: { since: 0, until: 6000 },
    });
    expect(await living.check(['g'])).toEqual(['approved']);
  });

  test('keeps its hits when Redis has lost its place', async () => {
    await redis.client.del(key.names.queue, key.names.waiting, key.names.replicas);
    await replica.settle({ w: 1 }, 500, '', { w: { hits: 4 } });
    const [entry] = await redis.client.lrange(key.names.queue, 0, -1);
    expect(entry).toMatch(/^\d+:w\*4@r1$/);
    await key.setTime(1000);
    expect((await replica.settle()).granted).toEqual(['w']);
    expect(await storedHits()).toEqual({ w: '4' });
  });

  test.each([
    ['is in time for the next window', 1000, 2],
    ['would come with the next window', 999, 'turn in 1000 ms'],
  ])('of which the turn %s', async (_which, maxWaitMillis, verdict) => {
    const hits = verdict === 2 ? 1 : 5;
    const [decided] = await replica.checkBatch([
      { requestId: 'x', canWait: true, hits, maxWaitMillis },
    ]);
    expect(decided).toBe(verdict);
  });
});

describe('a check with hits that is sent again', () => {
  let again: TestReplica;
  beforeEach(() => {
    again = key.replica('r1', { limits: { maxRequests: 5 }, guard: sentAgain });
  });

  test.each([0, 1000])('takes no second approval, %d ms later', async (millis) => {
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

  test('is decided again if it was not approved, and no second denial is counted', async () => {
    await replica.check(['b', 'c', 'd']);
    await replica.checkHits('a', 3);
    expect(await again.checkHits('a', 3)).toBe('denied');
    expect(await key.stored()).toMatchObject({ state: { approved: 3, denied: 1 } });
    await replica.release('b');
    expect(await again.checkHits('a', 3)).toBe('approved');
    expect(await key.stored()).toMatchObject({ requests: ['a', 'c', 'd'] });
  });
});

describe('batches of one call', () => {
  const batch = (ids: Readonly<Record<string, number>>, names = key.names): CheckBatch => ({
    names,
    overrides: { maxRequests: undefined, maxRequestsInQueue: undefined },
    waiting: undefined,
    checks: Object.entries(ids).map(([requestId, hits]) => ({ requestId, canWait: false, hits })),
  });
  const { approved, denied } = VERDICT;

  test('have hits for each check, which are decided in their order', async () => {
    const replies = await replica.scripts.check([batch({ a: 1, b: 2, c: 3, d: 2, e: 1 })]);
    expect(replies).toMatchObject([
      {
        quota: { limits: [{ remaining: 0 }] },
        verdicts: [approved, approved, denied, approved, denied],
      },
    ]);
  });

  test('with hits of a broken key affect no other batch', async () => {
    const broken = await ScriptHarness.create(redis.client);
    await redis.client.set(broken.names.state, 'not ours', 'EX', 60);
    const [failure, other] = await replica.scripts.check([
      batch({ a: 2 }, broken.names),
      batch({ b: 2 }),
    ]);
    expect(failure).toMatchObject({ message: expect.stringMatching(/^WRONGTYPE /) as unknown });
    expect(other).toMatchObject({ verdicts: [approved] });
  });

  test('with hits of a new key fail as a whole in a full Redis', async () => {
    const [reply] = await whileFull(redis.client, () => replica.scripts.check([batch({ a: 3 })]));
    expect(reply).toBeInstanceOf(StoreFullError);
    expect(await key.stored()).toMatchObject({ state: undefined, requests: [] });
  });

  test('with hits of an existing key are decided as a whole in a full Redis', async () => {
    await replica.check(['a']);
    const [reply] = await whileFull(redis.client, () => replica.scripts.check([batch({ b: 4 })]));
    expect(reply).toMatchObject({ verdicts: [approved], quota: { limits: [{ remaining: 0 }] } });
    expect(await storedHits()).toEqual({ b: '4' });
  });
});

test('a withdrawal takes back all hits of a check that may have been approved', async () => {
  await replica.checkHits('a', 3);
  await replica.check(['b']);
  await replica.withdraw(['a']);
  expect(await key.stored()).toMatchObject({ state: { approved: 1 }, requests: ['b'] });
  expect(await storedHits()).toEqual({});
});
