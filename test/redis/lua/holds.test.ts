import { StoreFullError } from '../../../src/limiter/errors.js';
import type { HeldApproval } from '../../../src/limiter/holdings.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import { FIRST_PAGE, type PageOfHolds } from '../../../src/redis/scripts/looks-codec.js';
import { elementsRead } from '../../support/elements-read.js';
import type { FurtherLimit } from '../../support/limits.js';
import { type TestReplica, checkBatchOf, useScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';
import { useWakeRecorder } from '../../support/wake-recorder.js';
import { whileFull } from '../../support/while-full.js';

const redis = useRedis();
const recordWakes = useWakeRecorder(redis);
const key = useScriptHarness(redis);

describe('a hold', () => {
  const limits = { maxRequests: 2 };
  const replica = key.replica('r1', { limits });

  describe('a check whose approval is held', () => {
    test('leaves its id with the time of its lapse and its length, and is in no set', async () => {
      await key.setTime(100);
      expect(await replica.checkHold('a', 2500)).toBe('approved');
      expect(await replica.check(['b'])).toEqual(['approved']);
      expect(await key.stored()).toMatchObject({
        state: { approved: 2, held: 1, lapses: [2600, 2600] },
        requests: ['b'],
        pastRequests: ['b'],
      });
      expect(await key.storedHolds()).toEqual({ a: '2600:2500' });
    });

    test('expires no sooner than the window and its hold', async () => {
      await replica.checkHold('a', 500);
      expect((await key.stored()).expiry).toMatchObject({ state: 11_000, lapses: 11_000 });
      await replica.checkHold('b', 60_000);
      expect((await key.stored()).expiry).toMatchObject({ state: 60_000, lapses: 60_000 });
    });

    test('leaves a plain key when it has ended', async () => {
      await replica.checkHold('a', 500);
      await key.setTime(500);
      expect(await replica.check(['b'])).toEqual(['approved']);
      expect(await redis.client.hgetall(key.names.state)).not.toHaveProperty('extra');
      expect(await key.storedHolds()).toEqual({});
    });

    test('of a new key fails in a full Redis', async () => {
      const check = { requestId: 'a', canWait: false, holdMillis: 2500 };
      const [reply] = await whileFull(redis.client, () =>
        replica.scripts.check([checkBatchOf(key.names, [check])]),
      );
      expect(reply).toBeInstanceOf(StoreFullError);
      expect((await key.stored()).expiry).toEqual({});
    });

    test('leaves the key to be removed when it lapses', async () => {
      // Three windows are no shorter than this lease, so nothing outlives them.
      const other = key.replica('r2', { limits, leaseMillis: 3000 });
      await other.checkHold('a', 60_000);
      await key.setTime(59_999);
      await other.settle();
      expect((await key.stored()).state).toMatchObject({ start: 59_000, approved: 1 });
      await key.setTime(60_000);
      await other.settle();
      expect((await key.stored()).expiry).toEqual({});
    });
  });

  describe('a renewal', () => {
    test('leaves nothing given back at the time of the lapse before', async () => {
      await key.setTime(1400);
      await replica.renewHold('a');
      await key.setTime(1500);
      await replica.check(['b']);
      expect(await redis.client.hget(key.names.state, 'released')).toBeNull();
    });

    beforeEach(async () => {
      await replica.checkHold('a', 1500);
    });

    test('to a longer hold puts off the expiry of every name', async () => {
      await replica.check(['b']);
      await replica.renewHold('a', { holdMillis: 80_000 });
      const { state, requests, records, lapses } = await key.expiry();
      expect([state, requests, records, lapses]).toEqual([80_000, 80_000, 80_000, 80_000]);
    });

    test('to a shorter hold tells those who wait when there is room', async () => {
      await replica.checkHold('b', 60_000);
      await replica.checkOrWait(['w']);
      const wakes = await recordWakes(key.names.wakeChannel);
      await key.setTime(200);
      await replica.renewHold('a', { holdMillis: 5000 });
      expect(await wakes.take()).toEqual([]);
      await replica.renewHold('a', { holdMillis: 300 });
      expect(await wakes.read()).toMatchObject([{ millisToRoom: 300, waiting: 1, granted: [] }]);
      await key.setTime(500);
      expect((await replica.settle()).granted).toEqual(['w']);
    });
  });

  test('the hits of a held approval are stored with it, and corrected with a renewal', async () => {
    const wide = key.replica('r1', { limits: { maxRequests: 5 } });
    await wide.checkHold('a', 1500, { hits: 3 });
    expect(await key.storedHolds()).toEqual({ a: '1500:1500*3' });
    expect(await redis.client.exists(key.names.took(0))).toBe(0);
    await key.setTime(100);
    for (const [hits, stored] of [
      [4, '1600:1500*4'],
      [1, '1600:1500'],
      [0, '1600:1500*0'],
    ] as const) {
      await wide.renewHold('a', { hits });
      expect(await key.storedHolds()).toEqual({ a: stored });
      expect(await key.counted()).toEqual({ approved: hits, held: hits });
    }
  });

  describe('waiters while approvals are held', () => {
    test('learn of the end of the window as soon as it makes room for them', async () => {
      await replica.checkHold('h', 60_000);
      await replica.check(['p']);
      await replica.renewHold('h', { hits: 2 });
      await replica.checkOrWait(['w']);
      expect(await replica.settle()).toMatchObject({ millisToRoom: 60_000 });
      const wakes = await recordWakes(key.names.wakeChannel);
      await key.setTime(100);
      await replica.renewHold('h', { hits: 1 });
      expect(await wakes.take()).toEqual([expect.stringContaining('"millisToRoom":900,')]);
      await key.setTime(1000);
      expect((await replica.settle()).granted).toEqual(['w']);
    });
  });

  describe('a waiter whose approval will be held', () => {
    const wide = key.replica('r1', { limits: { maxRequests: 5, maxRequestsInQueue: 10 } });
    beforeEach(async () => {
      await wide.checkHits('a', 5);
      await wide.checkHold('w', 2500, { canWait: true, holder: 'host:1' });
      await wide.checkHold('x', 3500, { canWait: true, hits: 3 });
    });

    test('has its hits, its hold and its holder in its record, also after Redis has lost its memory', async () => {
      const records = {
        w: { holdMillis: 2500, holder: 'host:1' },
        x: { hits: 3, holdMillis: 3500 },
      };
      expect(await key.storedRecords()).toMatchObject(records);
      await key.lose();
      await wide.settle({ w: 0, x: 1 }, 900, '', records);
      expect(await key.storedRecords()).toMatchObject(records);
      await key.setTime(1000);
      expect((await wide.settle()).granted).toEqual(['w', 'x']);
      expect(await key.storedHolds()).toEqual({ w: '3500:2500', x: '4500:3500*3' });
    });
  });

  test('the only one leaves nothing held, and none of a later one', async () => {
    const replica = key.replica('r1', { limits: { maxRequests: 2 } });
    const held = { canWait: false, hits: 2, holdMillis: 5000 };
    await replica.checkBatch([{ requestId: 'a', ...held }]);
    await replica.release('a');
    expect(await key.optionalFields()).not.toHaveProperty('held');
    expect(await replica.checkBatch([{ requestId: 'b', ...held }])).toEqual(['approved']);
  });

  describe('names that somebody has removed alone', () => {
    test('the state: no hold counts any more, and none comes back', async () => {
      await replica.checkHold('a', 60_000);
      await replica.checkHold('b', 60_000);
      await key.lose('state');
      expect(await replica.renewHold('a')).toBeUndefined();
      expect(await replica.check(['c'])).toEqual(['approved']);
      expect(await key.counted()).toEqual({ approved: 1, held: 0 });
      expect(await replica.renewHold('a')).toBeUndefined();
      expect(await replica.release('a')).toBe(false);
      expect(await replica.checkHold('d', 2500)).toBe('approved');
      expect(await key.storedHolds()).toEqual({ d: '2500:2500' });
      expect(await key.counted()).toEqual({ approved: 2, held: 1 });
    });

    test.each(['records', 'lapses'] as const)(
      'their %s: none counts from the next call on, and one that comes again has its new time',
      async (name) => {
        await replica.checkHold('a', 5000);
        await replica.checkHold('b', 60_000);
        await key.lose(name);
        expect(await replica.inspect()).toMatchObject({ held: 0 });
        expect(await replica.check(['c'])).toEqual(['approved']);
        expect(await replica.checkHold('a', 2500)).toBe('approved');
        expect(await key.storedHolds()).toEqual({ a: '2500:2500' });
        expect(await key.counted()).toEqual({ approved: 2, held: 1 });
      },
    );
  });
});

describe('many holds', () => {
  /** More than are read whole. */
  const MANY = 300;
  const options = { limits: { maxRequests: MANY + 10 }, maxHoldsPerKey: MANY + 10 };
  const replica = key.replica('r1', options);
  /** All but the first three lapse after a minute or later. */
  beforeEach(async () => {
    await replica.checkHold('first', 100);
    await replica.checkHold('second', 200, { hits: 2 });
    await replica.checkHold('third', 300);
    await replica.checkBatch(
      Array.from({ length: MANY - 3 }, (_, i) => ({
        requestId: `h${i}`,
        canWait: false,
        holdMillis: 60_000 + i,
      })),
    );
  });

  test('a look reads no holds but those that have lapsed', async () => {
    await key.setTime(250);
    const work = async (): Promise<void> => {
      expect(await replica.inspect()).toMatchObject({ used: MANY - 2, held: MANY - 2 });
      expect(await replica.examine()).toMatchObject({ held: MANY - 2 });
    };
    // The one that is the next to lapse is read as well.
    expect(await elementsRead(redis.client, key.names.lapses, work)).toBe(2 * (2 + 1));
  });

  test('a check ends the holds that have lapsed without a look at the others', async () => {
    await key.setTime(250);
    // Those that have lapsed are gone when the reads are counted.
    const work = (): Promise<unknown> => replica.checkHold('new', 60_000);
    expect(await elementsRead(redis.client, key.names.lapses, work)).toBeLessThanOrEqual(3);
    expect(await key.counted()).toEqual({ approved: MANY - 1, held: MANY - 1 });
    expect(Object.keys(await key.storedHolds())).not.toContain('second');
    expect((await key.stored()).state).toMatchObject({ lapses: [300, 60_000 + MANY - 4] });
  });

  test('a hold ends at its time after renewals, corrections and releases', async () => {
    await replica.renewHold('first', { holdMillis: 5000, hits: 3 });
    await replica.renewHold('third', { hits: 1 });
    await replica.release('second');
    await key.setTime(299);
    expect(await replica.inspect()).toMatchObject({ held: MANY + 1 });
    await key.setTime(300);
    expect(await replica.inspect()).toMatchObject({ held: MANY });
    await replica.renewHold('h0');
    expect((await key.stored()).state).toMatchObject({ held: MANY, lapses: [5000, 60_300] });
    await key.setTime(5000);
    await replica.renewHold('h0');
    expect(await key.counted()).toEqual({ approved: MANY - 3, held: MANY - 3 });
  });

  test('the records and the order of the holds are kept for as long as these are', async () => {
    const { records, lapses } = await key.expiry();
    expect(records).toBe(lapses);
    await key.setTime(120_000);
    await replica.check(['x']);
    expect(await redis.client.exists(key.names.records, key.names.lapses)).toBe(0);
  });
});

test('many holds of lanes lapse with their lanes, and are corrected in the limits of these', async () => {
  const interactive: QueueList = { kind: 'lane', name: 'interactive', headStartMillis: 30_000 };
  const batch: QueueList = { kind: 'lane', name: 'batch', headStartMillis: 0 };
  const further: FurtherLimit[] = [
    {
      name: 'share',
      windowMillis: 1000,
      maximum: 200,
      counts: 'hits',
      keepsReleased: false,
      lanes: ['batch'],
    },
  ];
  const many = key.replica('r1', { limits: { maxRequests: 400, further } });
  /** What counts of the own limit and of the share. */
  const used = async (): Promise<number[] | undefined> =>
    (await many.inspect())?.limits.map((limit) => limit.used);

  for (let i = 0; i < 60; i += 1) {
    const list = i % 2 === 0 ? batch : interactive;
    await many.checkHold(`h${i}`, i % 3 === 0 ? 5000 : 60_000, { list, hits: (i % 2) + 1 });
  }
  await key.setTime(1500);
  expect(await used()).toEqual([90, 30]);
  await key.setTime(5500);
  // 10 of each lane have lapsed.
  expect(await used()).toEqual([60, 20]);
  await many.checkBatch([{ requestId: 'x', canWait: false, list: interactive }]);
  expect(await used()).toEqual([61, 20]);
  await many.renewHold('h2', { hits: 5 });
  expect(await used()).toEqual([65, 24]);
  await many.renewHold('h1', { hits: 1 });
  expect(await used()).toEqual([64, 24]);
});

describe('holders', () => {
  const HOLD = 2500;
  const limits = { maxRequests: 2, maxRequestsInQueue: 10 };
  const replica = key.replica('r1', { limits });

  /** All pages of the holds of the key, in the order in which Redis names them. */
  async function heldOf({ scripts }: Pick<TestReplica, 'scripts'>): Promise<HeldApproval[]> {
    const held: HeldApproval[] = [];
    for (let next: string | undefined = FIRST_PAGE; next !== undefined;) {
      const page: PageOfHolds = await scripts.holders(key.names, next, 10);
      held.push(...page.held);
      next = page.next;
    }
    return held;
  }

  describe('a holder', () => {
    test('is stored with the beginning of its hold, and goes with the hold', async () => {
      await key.setTime(100);
      await replica.checkHold('a', HOLD, { holder: 'host:1' });
      await replica.checkHold('b', HOLD);
      await key.setTime(200);
      await replica.renewHold('a');
      const since = key.startMillis + 100;
      expect((await key.storedRecords()).a).toMatchObject({ holder: 'host:1', since });
      const held = await heldOf(replica);
      expect(held.sort((a, b) => b.lapseMillis - a.lapseMillis)).toEqual([
        { requestId: 'a', holder: 'host:1', heldMillis: 100, lapseMillis: HOLD, hits: 1 },
        {
          requestId: 'b',
          holder: undefined,
          heldMillis: undefined,
          lapseMillis: HOLD - 100,
          hits: 1,
        },
      ]);
      await replica.release('a');
      expect(Object.keys(await key.storedRecords())).toEqual(['b']);
    });
  });

  test('many holds come in several pages, each of them once if nothing changes', async () => {
    const many = Array.from({ length: 600 }, (_, i) => `h${i}`);
    const large = key.replica('r3', { limits: { maxRequests: 1000 }, maxHoldsPerKey: 1000 });
    await large.checkBatch(
      many.map((requestId) => ({ requestId, canWait: false, holdMillis: HOLD, holder: requestId })),
    );
    const { next, held } = await large.scripts.holders(key.names, FIRST_PAGE, 10);
    expect(next).toBeDefined();
    expect(held.length).toBeLessThan(100);
    const all = await heldOf(large);
    expect(all.map(({ requestId }) => requestId).sort()).toEqual([...many].sort());
    expect(all.every(({ requestId, holder }) => holder === requestId)).toBe(true);
  });
});
