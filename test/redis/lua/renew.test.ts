import {
  ScriptHarness,
  useScriptHarness,
  TEST_LEASE_MILLIS,
} from '../../support/script-harness.js';
import { letThemWait } from '../../support/let-them-wait.js';
import { useRedis } from '../../support/use-redis.js';
import { whileFull } from '../../support/while-full.js';

/** The part of a lease after which all replicas may have been cut off: lua/lib/recovery.lua. */
const SILENT_MILLIS = 0.6 * TEST_LEASE_MILLIS;

const THERE_WHILE_WAITING = ['queue', 'waiting'] as const;

const redis = useRedis();

const options = { limits: { windowMillis: 600_000 } };

const key = useScriptHarness(redis);
const [r1, r2] = [key.replica('r1', options), key.replica('r2', options)];
beforeEach(() => letThemWait(r1, r2));

describe('a renewal', () => {
  test("changes the caller's lease, and nothing else", async () => {
    const before = await key.stored();
    await key.setTime(1000);
    expect(await r1.renew(2)).toBe(true);
    expect(await key.stored()).toEqual({
      ...before,
      replicas: { r1: 1000 + TEST_LEASE_MILLIS, r2: TEST_LEASE_MILLIS },
    });
  });

  test('is made if Redis knows more places than the caller', async () => {
    await key.setTime(1000);
    expect(await r1.renew(1)).toBe(true);
    expect((await key.stored()).replicas).toMatchObject({ r1: 1000 + TEST_LEASE_MILLIS });
  });

  test('that is sent again renews again', async () => {
    await key.setTime(1000);
    await r1.renew(2);
    await key.setTime(1300);
    expect(await r1.renew(2)).toBe(true);
    expect((await key.stored()).replicas).toMatchObject({ r1: 1300 + TEST_LEASE_MILLIS });
  });

  test('is made while Redis has no memory left', async () => {
    expect(await whileFull(redis.client, () => r1.renew(2))).toBe(true);
  });
});

describe('a renewal leaves to a settle a key', () => {
  let before: Awaited<ReturnType<ScriptHarness['stored']>>;
  const expectLeft = async (renewed: Promise<boolean>): Promise<void> => {
    before = await key.stored();
    expect(await renewed).toBe(false);
    expect(await key.stored()).toEqual(before);
  };

  test('that Redis does not know', async () => {
    const unknown = await ScriptHarness.create(redis.client);
    expect(await unknown.replica('r1').renew(1)).toBe(false);
    expect((await unknown.stored()).expiry).toEqual({});
  });

  test.each(THERE_WHILE_WAITING)(
    'that has lost its state, whether or not it has its %s',
    async (lookFor) => {
      await key.lose('state');
      await expectLeft(r1.renew(2, { lookFor }));
    },
  );

  test('for which nobody has waited since its state was made again', async () => {
    await redis.client.hdel(key.names.state, 'more');
    await expectLeft(r1.renew(2));
  });

  test.each(['queue', 'waiting', 'replicas'] as const)(
    'that has lost only its %s',
    async (lost) => {
      const lookFor = lost === 'waiting' ? 'waiting' : 'queue';
      expect(await r1.renew(2, { lookFor })).toBe(true);
      await key.lose(lost);
      expect(await r1.renew(2, { lookFor })).toBe(false);
      expect(await redis.client.exists(key.names[lost])).toBe(0);
    },
  );

  test('in which the caller has no place', async () => {
    await expectLeft(key.replica('r3', options).renew(1));
  });

  test('in which a place of the caller has left the queue', async () => {
    await r2.release('a');
    await expectLeft(r1.renew(2));
  });

  test('in which a place has left, and a newcomer with its answer on the way has replaced it', async () => {
    await r2.release('a');
    await r1.checkOrWait(['f']);
    expect(await key.queued()).toEqual(['d@r2', 'e@r1', 'f@r1']);
    await expectLeft(r1.renew(2, { wakeNumber: 0 }));
    expect(await r1.renew(2, { wakeNumber: 1 })).toBe(true);
  });

  test.each([
    ['a wake that the caller has missed', 0],
    ['fewer wakes than the caller knows of', 2],
    ['wakes of which the caller knows none', undefined],
  ])('with %s', async (_what, wakeNumber) => {
    await r1.release('a');
    const leased = { names: key.names, places: 1, lookFor: 'queue' as const };
    const states = await r1.scripts.renew([{ ...leased, wakeNumber }]);
    expect(states).toHaveLength(1);
    expect(await r1.scripts.renew([{ ...leased, wakeNumber: 1 }])).toEqual([]);
  });

  test('if its lease should have been renewed before', async () => {
    await key.setTime(SILENT_MILLIS);
    expect(await r1.renew(2)).toBe(true);
    await key.setTime(SILENT_MILLIS + 1);
    await expectLeft(r2.renew(1));
  });

  test('if its lease is longer than it was given, since the clock went back', async () => {
    await key.setTime(500);
    await r1.renew(2);
    await key.setTime(400);
    await expectLeft(r1.renew(2));
  });

  test('of a wrong type, without effect on other keys', async () => {
    const { names } = await ScriptHarness.create(redis.client);
    const { state, queue, waiting, replicas } = names;
    for (const name of [state, queue, waiting, replicas]) {
      await redis.client.set(name, 'not ours', 'PX', 60_000);
    }
    const leased = [names, key.names].map((each) => ({
      names: each,
      places: 2,
      wakeNumber: 0,
      lookFor: 'queue' as const,
    }));
    await key.setTime(100);
    expect(await r1.scripts.renew(leased)).toEqual([leased[0]]);
    expect((await key.stored()).replicas).toMatchObject({ r1: 100 + TEST_LEASE_MILLIS });
  });
});

test('after Redis was down no renewal comes before the hold', async () => {
  await key.setTime(TEST_LEASE_MILLIS - 1);
  expect(await r1.renew(2)).toBe(false);
  await r1.settle();
  expect((await key.stored()).state).toMatchObject({ holdUntil: TEST_LEASE_MILLIS - 1 + 500 });
  expect(await r1.renew(2)).toBe(true);
});

test('no call is made without a lease', async () => {
  expect(await r1.scripts.renew([])).toEqual([]);
});
