import { beforeOrder } from '../../support/before-order.js';
import { elementsRead } from '../../support/elements-read.js';
import { limiterRules } from '../../support/redis-user.js';
import { useScriptHarness } from '../../support/script-harness.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

/** More than are read whole. */
const MANY = 300;
const options = { limits: { maxRequests: MANY + 10 }, maxHoldsPerKey: MANY + 10 };

const key = useScriptHarness(redis);
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
  expect(await elementsRead(redis.client, key.names.holds, work)).toBe(2 * (2 + 1));
});

test('a check ends the holds that have lapsed without a look at the others', async () => {
  await key.setTime(250);
  // Those that have lapsed are gone when the reads are counted.
  const work = (): Promise<unknown> => replica.checkHold('new', 60_000);
  expect(await elementsRead(redis.client, key.names.holds, work)).toBeLessThanOrEqual(3);
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

test('the order of the holds is kept for as long as they are', async () => {
  expect(await redis.client.zcard(key.names.holdsByLapse)).toBe(MANY);
  const { holds, holdsByLapse } = await key.expiry();
  expect(holdsByLapse).toBe(holds);
  await key.setTime(120_000);
  await replica.check(['x']);
  expect(await redis.client.exists(key.names.holds, key.names.holdsByLapse)).toBe(0);
});

test.each(['holds', 'holdsByLapse'] as const)(
  'the count of what is held is exact when Redis has lost %s alone',
  async (name) => {
    await key.lose(name);
    await key.setTime(250);
    const held = name === 'holds' ? 0 : MANY - 2;
    expect(await replica.inspect()).toMatchObject({ held });
    await replica.check(['x']);
    expect(await key.counted()).toEqual({ approved: held + 1, held });
    await key.setTime(350);
    await replica.check(['y']);
    expect(await key.counted()).toEqual({
      approved: Math.max(0, held - 1) + 2,
      held: Math.max(0, held - 1),
    });
  },
);

test('the count of what is held is exact beside a replica that does not know of the order', async () => {
  const before = key.replica('r2', { ...options, replacements: beforeOrder() });
  // As many holds as before, others than the order has.
  await before.renewHold('first', { holdMillis: 30_000 });
  await before.renewHold('h7', { holdMillis: 150 });
  await before.release('third');
  await before.checkHold('other', 170);
  const heldAt = async (millis: number): Promise<unknown> => {
    await key.setTime(millis);
    return (await replica.inspect())?.held;
  };
  expect(await heldAt(149)).toBe(MANY + 1);
  expect(await heldAt(150)).toBe(MANY);
  await replica.renewHold('h0');
  expect(await heldAt(170)).toBe(MANY - 1);
  await replica.renewHold('h0');
  expect(await heldAt(200)).toBe(MANY - 3);
  await replica.renewHold('h0');
  // The order follows the holds again.
  const work = (): Promise<unknown> => heldAt(30_000);
  expect(await elementsRead(redis.client, key.names.holds, work)).toBe(2);
});

test('holds work for a user whose rules do not allow their order', async () => {
  const user = uniqueKey();
  const rules = limiterRules().filter((rule) => !rule.startsWith('+z'));
  await redis.client.call('ACL', 'SETUSER', user, 'on', 'nopass', ...rules);
  const client = redis.client.duplicate({ username: user, password: 'any' });
  try {
    const replica2 = key.replica('r2', { ...options, client });
    await replica2.release('first');
    await replica2.checkHold('other', 150);
    await key.setTime(200);
    expect(await replica2.inspect()).toMatchObject({ held: MANY - 2 });
    await replica2.check(['x']);
    expect(await key.counted()).toEqual({ approved: MANY - 1, held: MANY - 2 });
  } finally {
    client.disconnect();
    await redis.client.call('ACL', 'DELUSER', user);
    await redis.client.call('ACL', 'LOG', 'RESET');
  }
});
