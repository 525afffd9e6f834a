import { StoreFullError } from '../../../src/limiter/errors.js';
import { type CheckBatch, VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { checkBatchOf, ScriptHarness, useScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';
import { whileFull } from '../../support/while-full.js';

const redis = useRedis();
const key = useScriptHarness(redis);
const replica = key.replica('r1', { limits: { maxRequests: 5 } });

/** The stored hits of the approvals that have more than one. */
const storedHits = (): Promise<Record<string, string>> => redis.client.hgetall(key.names.hits);

describe('a check with hits', () => {
  test('leaves its id and the number of its hits, which expire together', async () => {
    expect(await replica.checkHits('a', 3)).toEqual('approved');
    expect(await replica.check(['b'])).toEqual(['approved']);
    expect(await replica.checkHits('c', 2)).toEqual('denied');
    expect(await key.stored()).toMatchObject({
      state: { approved: 4, denied: 1 },
      requests: ['a', 'b'],
      expiry: { requests: 11_000, hits: 11_000 },
    });
    expect(await storedHits()).toEqual({ a: '3' });
  });

  test('leaves a plain key when its window has ended', async () => {
    await replica.checkHits('a', 3);
    expect(await redis.client.hget(key.names.state, 'hits')).toBe('1');
    await key.setTime(1000);
    await replica.check(['b']);
    expect(await redis.client.hget(key.names.state, 'more')).toBe(null);
    expect(await storedHits()).toEqual({});
  });

  test('has the exact number of its hits, up to a billion', async () => {
    const large = key.replica('r1', { limits: { maxRequests: 1_000_000_000 } });
    expect(await large.checkHits('a', 999_999_999)).toBe('approved');
    expect(await large.checkHits('b', 2)).toBe('denied');
    expect(await storedHits()).toEqual({ a: '999999999' });
    expect(await large.release('a')).toBe(true);
    expect(await key.stored()).toMatchObject({ state: { approved: 0 }, requests: [] });
    expect(await storedHits()).toEqual({});
  });

  test.each([
    ['are longer than a lease', 4000],
    ['are shorter than a lease', 100],
  ])('keeps its id but not its hits after its window, if three windows %s', async (_w, millis) => {
    const other = key.replica('r1', { limits: { windowMillis: millis, maxRequests: 5 } });
    await other.checkHits('a', 3);
    await key.setTime(millis);
    await other.check(['b']);
    expect(await key.stored()).toMatchObject({
      state: { approved: 1 },
      requests: ['b'],
      pastRequests: expect.arrayContaining(['a']) as unknown,
    });
    expect(await storedHits()).toEqual({});
    await key.pastExpiry();
  });

  test('takes all of its hits back if it is withdrawn after its approval', async () => {
    await replica.checkHits('a', 3);
    await replica.check(['b']);
    await replica.withdraw(['a']);
    expect(await key.stored()).toMatchObject({ state: { approved: 1 }, requests: ['b'] });
    expect(await storedHits()).toEqual({});
  });
});

describe('a correction', () => {
  const slow = key.replica('r1', { limits: { windowMillis: 4000, maxRequests: 5 } });
  beforeEach(async () => {
    await slow.check(['a', 'b']);
    await slow.checkHits('c', 2);
  });

  test('stores the hits that are not one', async () => {
    for (const [id, hits, stored] of [
      ['a', 2, { a: '2', c: '2' }],
      ['c', 1, { a: '2' }],
      ['a', 1, {}],
    ] as const) {
      expect(await slow.amend(id, hits)).toBe(true);
      expect(await storedHits()).toEqual(stored);
    }
  });

  test('to no hits keeps the names of the approvals, until their window ends', async () => {
    for (const id of ['a', 'b', 'c']) await slow.amend(id, 0);
    expect(await key.stored()).toMatchObject({
      state: { approved: 0 },
      requests: ['a', 'b', 'c'],
      expiry: { requests: 16_000, hits: 16_000 },
    });
    await key.setTime(4000);
    await slow.check(['d']);
    expect((await key.stored()).requests).toEqual(['d']);
  });

  test('of an unknown key makes none', async () => {
    const other = await ScriptHarness.create(redis.client);
    expect(await other.replica('r1').amend('a', 2)).toBe(false);
    expect((await other.stored()).expiry).toEqual({});
  });
});

describe('a waiter with hits', () => {
  beforeEach(async () => {
    await replica.check(['a', 'b', 'c']);
    await replica.checkHits('w', 4, { canWait: true });
  });

  test('is in the queue with them, also after Redis has lost its place', async () => {
    const entry = expect.stringMatching(/^\d+:w\*4@r1$/) as unknown;
    expect(await redis.client.lrange(key.names.queue, 0, -1)).toEqual([entry]);
    await key.lose('queue', 'waiting', 'replicas');
    await replica.settle({ w: 1 }, 500, '', { w: { hits: 4 } });
    expect(await redis.client.lrange(key.names.queue, 0, -1)).toEqual([entry]);
    await key.setTime(1000);
    expect((await replica.settle()).granted).toEqual(['w']);
    expect(await storedHits()).toEqual({ w: '4' });
  });

  test('is not overtaken if the version before has noted that it does not fit', async () => {
    await replica.release('a');
    await redis.client.hset(key.names.state, { serving: 0, blocked: 1 });
    expect(await replica.check(['f'])).toEqual(['denied']);
    expect(await key.stored()).toMatchObject({ state: { isServing: true }, queue: [['w@r1', 1]] });
    expect(await redis.client.hget(key.names.state, 'blocked')).toBe('0');
  });

  test('of a dead replica does not keep newcomers out', async () => {
    const dead = key.replica('dead', { limits: { maxRequests: 5, windowMillis: 60_000 } });
    await replica.withdraw(['w']);
    await dead.checkHits('x', 4, { canWait: true });
    expect(await replica.check(['f'])).toEqual(['denied']);
    await key.setTime(6000);
    const history = { since: 0, until: 6000 };
    const living = key.replica('r1', { limits: { maxRequests: 5 }, history });
    expect(await living.check(['g'])).toEqual(['approved']);
  });
});

test('checks with hits of a new key fail in a full Redis, and those of a known key are decided', async () => {
  const batch = (requestId: string, hits: number): CheckBatch =>
    checkBatchOf(key.names, [{ requestId, canWait: false, hits }]);
  const [refused] = await whileFull(redis.client, () => replica.scripts.check([batch('a', 3)]));
  expect(refused).toBeInstanceOf(StoreFullError);
  expect(await key.stored()).toMatchObject({ state: undefined, requests: [] });
  await replica.check(['a']);
  const [reply] = await whileFull(redis.client, () => replica.scripts.check([batch('b', 4)]));
  expect(reply).toMatchObject({ verdicts: [VERDICT.approved] });
  expect(await storedHits()).toEqual({ b: '4' });
});
