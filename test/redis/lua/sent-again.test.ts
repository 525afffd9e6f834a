import type { BatchedCheck } from '../../../src/redis/scripts/check-codec.js';
import { useScriptHarness, type Verdict } from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);
const limits = { maxRequests: 5 };
const replica = key.replica('r1', { limits });
const again = key.replica('r1', { limits, guard: sentAgain });

const KINDS: [kind: string, terms: Partial<BatchedCheck>][] = [
  ['plain', {}],
  ['with hits', { hits: 3 }],
  ['held', { holdMillis: 2500 }],
];

const check = (requestId: string, terms: Partial<BatchedCheck> = {}): BatchedCheck => ({
  requestId,
  canWait: false,
  ...terms,
});

const stored = async (): Promise<unknown> => [
  await key.stored(),
  await key.storedHolds(),
  await redis.client.hgetall(key.names.hits),
];

describe.each(KINDS)('a check that is sent again, %s,', (_kind, terms) => {
  test.each([0, 1000, 2499])('takes no second approval, %d ms later', async (millis) => {
    await replica.checkBatch([check('a', terms)]);
    await key.setTime(millis);
    await replica.check(['b']);
    const before = await stored();
    expect(await again.checkBatch([check('a', terms)])).toEqual(['approved']);
    expect(await stored()).toEqual(before);
  });

  test.each([0, 1500])('takes nothing after its release, %d ms later', async (millis) => {
    await replica.checkBatch([check('a', terms)]);
    await key.setTime(millis);
    await replica.release('a');
    expect(await again.checkBatch([check('a', terms)])).toEqual(['approved']);
    expect(await key.stored()).toMatchObject({ state: { approved: 0, denied: 0 }, requests: [] });
    expect(await key.storedHolds()).toEqual({});
  });

  test('is decided again if it was denied, and counts no second denial', async () => {
    await replica.check(['b', 'c', 'd', 'e', 'f']);
    await replica.checkBatch([check('a', terms)]);
    expect(await again.checkBatch([check('a', terms)])).toEqual(['denied']);
    expect((await key.stored()).state).toMatchObject({ approved: 5, denied: 1 });
    for (const id of ['b', 'c', 'd']) await replica.release(id);
    expect(await again.checkBatch([check('a', terms)])).toEqual(['approved']);
    expect((await key.stored()).state).toMatchObject({ denied: 1 });
  });

  test('keeps its place in the queue, however long it would wait now', async () => {
    await replica.check(['b', 'c', 'd', 'e', 'f']);
    const waits = { ...terms, canWait: true, maxWaitMillis: 1000 };
    const [ticket] = await replica.checkBatch([check('a', waits)]);
    await key.setTime(10);
    const before = await stored();
    expect(await again.checkBatch([check('a', { ...waits, maxWaitMillis: 5 })])).toEqual([ticket]);
    expect(await stored()).toEqual(before);
  });
});

test('a held check that is sent again after its lapse is decided as a new one', async () => {
  await replica.checkHold('a', 500);
  await key.setTime(500);
  expect(await again.checkHold('a', 500)).toBe('approved');
  expect(await key.storedHolds()).toEqual({ a: '1000:500' });
  expect((await key.stored()).state).toMatchObject({ approved: 1, held: 1 });
});

describe('checks that are sent again among others', () => {
  const fill = (): Promise<Verdict[]> => replica.check(['a', 'b'], { maxRequests: 2 });

  test('take no room if the window has room', async () => {
    await replica.check(['a'], { maxRequests: 2 });
    expect(await again.check(['a', 'b', 'c'])).toEqual(['approved', 'approved', 'denied']);
    expect(await key.stored()).toMatchObject({ state: { denied: 0 }, requests: ['a', 'b'] });
  });

  test('are decided separately from new ones', async () => {
    await fill();
    await replica.checkOrWait(['c']);
    const batch = [check('x'), check('b'), check('c', { canWait: true })];
    expect(await again.checkBatch([...batch, check('d', { canWait: true })])).toEqual([
      'denied',
      'approved',
      1,
      2,
    ]);
    expect((await key.stored()).state).toMatchObject({ approved: 2, denied: 0 });
    expect(await key.queued()).toEqual(['c@r1', 'd@r1']);
  });

  test('are approved if their turn comes with the window of the second call', async () => {
    await fill();
    await replica.checkOrWait(['c']);
    await key.setTime(1000);
    expect(await again.checkOrWait(['c', 'd', 'e'])).toEqual(['approved', 'approved', 1_000_000]);
    expect(await key.stored()).toMatchObject({
      requests: ['c', 'd'],
      queue: [['e@r1', 1_000_000]],
    });
  });

  test('never take a second place in a full queue', async () => {
    await fill();
    await replica.checkOrWait(['c', 'd', 'e']);
    expect(await again.checkOrWait(['e', 'f'])).toEqual([3, 'queue full']);
  });
});
