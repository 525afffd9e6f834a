import { FIXED_WINDOW } from '../../../src/limiter/limits.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { BatchedCheck } from '../../../src/redis/scripts/check-codec.js';
import type { FurtherLimit } from '../../support/limits.js';
import { type TestReplica, useScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

const INTERACTIVE: QueueList = { kind: 'lane', name: 'interactive', headStartMillis: 30_000 };
const BATCH: QueueList = { kind: 'lane', name: 'batch', headStartMillis: 0 };

/** A limit that counts the batch lane only. */
const share = (maximum: number, more: Partial<FurtherLimit> = {}): FurtherLimit => ({
  name: 'share',
  windowMillis: 1000,
  maximum,
  algorithm: FIXED_WINDOW,
  counts: 'hits',
  keepsReleased: false,
  lanes: ['batch'],
  ...more,
});
const withShare = (maxRequests: number, further: FurtherLimit) => ({
  windowMillis: 1000,
  maxRequests,
  maxRequestsInQueue: 100,
  further: [further],
});

async function ask(
  replica: TestReplica,
  requestId: string,
  list: QueueList | undefined,
  more: Partial<BatchedCheck> = {},
) {
  const [verdict] = await replica.checkBatch([{ requestId, canWait: false, list, ...more }]);
  return verdict;
}
const WAITS = { canWait: true };
const PLACE: unknown = expect.any(Number);

/** What counts of the own limit and of the share. */
async function used(replica: TestReplica): Promise<number[]> {
  const { limits } = (await replica.inspect())!;
  return limits.map((limit) => limit.used);
}

test.each([
  ['fixed window', {}],
  ['sliding window', { algorithm: { name: 'sliding_window', steps: 5 } }],
  ['token bucket', { algorithm: { name: 'token_bucket', burst: 2 } }],
] as const)(
  'a %s of some lanes binds only their checks, whether these wait or not',
  async (_, more) => {
    const replica = key.replica('r1', { limits: withShare(5, share(2, more)) });
    expect(await ask(replica, 'b1', BATCH)).toBe('approved');
    expect(await ask(replica, 'b2', BATCH, { hits: 2 })).toBe('denied');
    expect(await ask(replica, 'i1', INTERACTIVE, { hits: 2 })).toBe('approved');
    expect(await ask(replica, 'b3', BATCH)).toBe('approved');
    expect(await ask(replica, 'b4', BATCH)).toBe('denied');
    expect(await ask(replica, 'none', undefined)).toBe('approved');
    expect(await used(replica)).toEqual([5, 2]);
  },
);

test('more hits than the maximum of a limit of other lanes may pass', async () => {
  const replica = key.replica('r1', { limits: withShare(5, share(2)) });
  expect(await ask(replica, 'b', BATCH, { hits: 3 })).toBe('too many hits');
  expect(await replica.peek({ hits: 3, list: BATCH })).toBe('too many hits');
  expect(await replica.peek({ hits: 3, list: INTERACTIVE })).toBe('approved');
  expect(await ask(replica, 'i', INTERACTIVE, { hits: 3 })).toBe('approved');
});

test('a head that only the limit of its lane stops does not stop the others', async () => {
  const limits = withShare(4, share(1, { windowMillis: 10_000 }));
  const replica = key.replica('r1', { limits, leaseMillis: 60_000 });
  expect(await ask(replica, 'b1', BATCH, WAITS)).toBe('approved');
  expect(await ask(replica, 'b2', BATCH, WAITS)).toEqual(PLACE);
  expect(await ask(replica, 'i1', INTERACTIVE, WAITS)).toBe('approved');
  expect(await ask(replica, 'b3', BATCH, WAITS)).toEqual(PLACE);
  expect(await ask(replica, 'b4', BATCH)).toBe('denied');
  expect(await ask(replica, 'i2', INTERACTIVE, { ...WAITS, hits: 2 })).toBe('approved');
  expect(await ask(replica, 'i3', INTERACTIVE, WAITS)).toEqual(PLACE);
  expect(await used(replica)).toEqual([4, 1]);

  await key.setTime(1000);
  const first = await replica.settle();
  expect(first).toMatchObject({ granted: ['i3'], waiting: 2, millisToRoom: 9000 });
  await key.setTime(10_000);
  expect(await replica.settle()).toMatchObject({ granted: ['b2'], waiting: 1 });
});

test('lanes behind a stopped one have their turns in order, with less room than there are lanes', async () => {
  const limits = withShare(2, share(1, { windowMillis: 10_000, lanes: ['interactive'] }));
  const replica = key.replica('r1', { limits, leaseMillis: 60_000 });
  const normal: QueueList = { kind: 'lane', name: 'normal', headStartMillis: 400 };
  await ask(replica, 'i1', INTERACTIVE, { hits: 1 });
  await ask(replica, 'n1', normal);
  await ask(replica, 'b1', BATCH, WAITS);
  await ask(replica, 'stopped', INTERACTIVE, WAITS);
  await key.setTime(500);
  await ask(replica, 'b2', BATCH, WAITS);
  await key.setTime(600);
  expect(await ask(replica, 'n2', normal, WAITS)).toEqual(PLACE);

  await key.setTime(1000);
  expect(await replica.settle()).toMatchObject({ granted: ['b1', 'n2'], waiting: 2 });
});

test('a head that the own limit stops stops all lanes', async () => {
  const replica = key.replica('r1', { limits: withShare(4, share(1)) });
  await ask(replica, 'x', INTERACTIVE, { hits: 3 });
  expect(await ask(replica, 'large', INTERACTIVE, { ...WAITS, hits: 2 })).toEqual(PLACE);
  expect(await ask(replica, 'b', BATCH)).toBe('denied');
  expect(await replica.peek({ list: BATCH })).toBe('turn in 1000 ms');
});

describe('held approvals', () => {
  const HOLD = { holdMillis: 60_000 };
  const limits = withShare(4, share(2));

  test('count in it as long as they are held, by their lanes', async () => {
    const replica = key.replica('r1', { limits });
    await ask(replica, 'b1', BATCH, HOLD);
    await ask(replica, 'b2', BATCH, HOLD);
    await ask(replica, 'i1', INTERACTIVE, HOLD);
    expect(await used(replica)).toEqual([3, 2]);
    await key.setTime(1500);
    expect(await ask(replica, 'b3', BATCH)).toBe('denied');
    expect(await used(replica)).toEqual([3, 2]);
    await replica.release('i1');
    expect(await ask(replica, 'b3', BATCH)).toBe('denied');
    await replica.release('b1');
    expect(await ask(replica, 'b3', BATCH)).toBe('approved');
    expect(await used(replica)).toEqual([2, 2]);
    await key.setTime(2500);
    expect(await used(replica)).toEqual([1, 1]);
  });

  test('count in a sliding window of their lanes', async () => {
    const sliding = share(2, { algorithm: { name: 'sliding_window', steps: 2 } });
    const replica = key.replica('r1', { limits: withShare(4, sliding) });
    await ask(replica, 'b', BATCH, HOLD);
    await ask(replica, 'i', INTERACTIVE, HOLD);
    expect(await used(replica)).toEqual([2, 1]);
    await key.setTime(2500);
    expect(await ask(replica, 'b2', BATCH, { hits: 2 })).toBe('denied');
    expect(await used(replica)).toEqual([2, 1]);
  });

  test('of many, lapse with their lanes', async () => {
    const many = withShare(400, share(200));
    const replica = key.replica('r1', { limits: many });
    for (let i = 0; i < 60; i += 1) {
      const holdMillis = i % 3 === 0 ? 5000 : 60_000;
      const list = i % 2 === 0 ? BATCH : INTERACTIVE;
      await ask(replica, `h${i}`, list, { holdMillis, hits: (i % 2) + 1 });
    }
    await key.setTime(1500);
    expect(await used(replica)).toEqual([90, 30]);
    await key.setTime(5500);
    // 10 of each lane have lapsed.
    expect(await used(replica)).toEqual([60, 20]);
    await ask(replica, 'x', INTERACTIVE);
    expect(await used(replica)).toEqual([61, 20]);
    await replica.renewHold('h2', { hits: 5 });
    expect(await used(replica)).toEqual([65, 24]);
    await replica.renewHold('h1', { hits: 1 });
    expect(await used(replica)).toEqual([64, 24]);
  });

  test('that nobody has claimed count as those of their lanes, and so do those claimed', async () => {
    const replica = key.replica('r1', { limits });
    await ask(replica, 'b1', BATCH, { hits: 2 });
    const kept = { ...WAITS, number: 1, keepMillis: 5000 };
    await ask(replica, 'kept', BATCH, kept);
    await key.setTime(1000);
    expect(await replica.settle()).toMatchObject({ granted: ['kept#1'] });
    await key.setTime(2100);
    expect(await used(replica)).toEqual([1, 1]);
    expect(await ask(replica, 'kept', BATCH, { ...kept, number: 2 })).toBe('approved');
    expect(await used(replica)).toEqual([1, 1]);
    await key.setTime(3000);
    expect(await used(replica)).toEqual([0, 0]);
  });
});

describe('other rules', () => {
  const HOLD = { holdMillis: 60_000 };
  test('for its lanes make it another limit, which counts what is held in these', async () => {
    const before = key.replica('r1', { limits: withShare(5, share(3)) });
    await ask(before, 'b1', BATCH, HOLD);
    await ask(before, 'i1', INTERACTIVE, { ...HOLD, hits: 2 });
    await ask(before, 'b2', BATCH);
    expect(await used(before)).toEqual([4, 2]);
    const limits = withShare(5, share(3, { lanes: ['batch', 'interactive'] }));
    const after = key.replica('r2', { limits });
    await key.setTime(100);
    await ask(after, 'x', INTERACTIVE, { hits: 2 });
    expect(await used(after)).toEqual([4, 3]);
  });
});
