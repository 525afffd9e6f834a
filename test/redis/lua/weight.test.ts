import { type KeyNames, KeyNaming } from '../../../src/redis/shared/key-names.js';
import {
  type BatchedCheck,
  type CheckBatch,
  VERDICT,
} from '../../../src/redis/scripts/check-codec.js';
import type { Scripts } from '../../../src/redis/scripts/scripts.js';
import { elementsReadByCalls } from '../../support/elements-read.js';
import { checkBatchOf, type Overrides } from '../../support/script-harness.js';
import { scriptsOfManyKeys } from '../../support/scripts-of-many-keys.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';

const LIMITS = { windowMillis: 3_600_000, maxRequests: 10_000, maxRequestsInQueue: 1000 };
const redis = useRedis();
const { approved, denied } = VERDICT;

/** lua/lib/weight.lua: a call that has read this many elements leaves the other keys to the next call. */
const MOST_READ = 1000;
const HOLDS = 600;
const FIRST_HOLD_MILLIS = 5;

let prefix: string;
let naming: KeyNaming;
let scripts: Scripts;
beforeEach(async () => {
  prefix = `${uniqueKey()}:`;
  naming = new KeyNaming(prefix);
  scripts = scriptsOfManyKeys(redis.client, () => LIMITS, { leaseMillis: 600_000 });
  // A function that is missing would be called twice.
  const names = naming.namesOf('unused');
  await Promise.all([scripts.inspect([names]), scripts.withdraw([{ names, claims: ['x'] }])]);
});

function batch(
  names: KeyNames,
  requestIds: readonly string[],
  terms: Partial<BatchedCheck> = {},
  overrides: Overrides = {},
): CheckBatch {
  const checks = requestIds.map((requestId) => ({ requestId, canWait: false, ...terms }));
  return checkBatchOf(names, checks, { overrides });
}

const ids = (count: number): string[] => Array.from({ length: count }, () => uniqueKey());

async function decide(...batches: CheckBatch[]): Promise<(readonly number[])[]> {
  const replies = await scripts.check(batches);
  return replies.map((reply) => {
    if (reply instanceof Error) throw reply;
    return reply.verdicts;
  });
}

/** Keys whose holds the next call reads whole: one hold has lapsed, and the order of the others is missing. */
async function keysToRead(count: number): Promise<KeyNames[]> {
  const keys = Array.from({ length: count }, (_, i) => naming.namesOf(`k${i}`));
  for (const names of keys) {
    await decide(batch(names, ids(HOLDS - 1), { holdMillis: 600_000 }));
    await decide(batch(names, ['first'], { holdMillis: FIRST_HOLD_MILLIS }));
    await redis.client.del(names.holdsByLapse);
  }
  const at = Date.now() + FIRST_HOLD_MILLIS + 5;
  await until(() => Date.now() > at);
  return keys;
}

/** Keys whose next call serves the waiters. */
async function keysToServe(count: number, waiters: number): Promise<KeyNames[]> {
  const keys = Array.from({ length: count }, (_, i) => naming.namesOf(`k${i}`));
  for (const names of keys) {
    await decide(batch(names, ['x'], {}, { maxRequests: 1 }));
    await decide(batch(names, ids(waiters), { canWait: true }));
    // As if the rules' maximum were in force again.
    await redis.client.hset(names.state, 'limits', '3600000:10000:1000', 'serving', 1);
  }
  return keys;
}

test('a page of keys is inspected by calls that each read a bounded number of holds', async () => {
  const keys = await keysToRead(4);
  const work = async (): Promise<void> => {
    const replies = await scripts.inspect(keys);
    expect(replies).toMatchObject(keys.map(() => ({ held: HOLDS - 1 })));
  };
  const calls = await elementsReadByCalls(redis.client, prefix, work);
  expect(calls).toEqual([2 * HOLDS, 2 * HOLDS]);
  expect(Math.max(...calls)).toBeLessThan(MOST_READ + HOLDS);
});

test.each([
  [
    'checked',
    async (keys: readonly KeyNames[]): Promise<unknown> =>
      decide(...keys.map((names) => batch(names, ['a']))),
    [approved],
  ],
  [
    'withdrawn from',
    (keys: readonly KeyNames[]): Promise<unknown> =>
      scripts.withdraw(keys.map((names) => ({ names, claims: ['unknown'] }))),
    0,
  ],
])('keys are %s by calls that each read a bounded number of holds', async (_how, call, reply) => {
  const keys = await keysToRead(4);
  const work = async (): Promise<void> => {
    expect(await call(keys)).toEqual(keys.map(() => reply));
  };
  const calls = await elementsReadByCalls(redis.client, prefix, work);
  // The first hold is gone when the reads are counted.
  expect(calls).toEqual([2 * (HOLDS - 1), 2 * (HOLDS - 1)]);
});

test('keys with waiters are checked by calls that each serve a bounded number', async () => {
  const keys = await keysToServe(4, 500);
  const work = (): Promise<unknown> => decide(...keys.map((names) => batch(names, ['a'])));
  expect(await elementsReadByCalls(redis.client, prefix, work)).toHaveLength(2);
  for (const names of keys) expect(await redis.client.hlen(names.waiting)).toBe(0);
});

test('the checks of a key that is left to the next call stay in order', async () => {
  const light = naming.namesOf('light');
  await decide(batch(light, ['x']));
  const heavy = await keysToRead(2);
  const verdicts = await decide(
    ...heavy.map((names) => batch(names, ['a'])),
    batch(light, ['b'], {}, { maxRequests: 2 }),
    batch(light, ['c']),
  );
  expect(verdicts).toEqual([[approved], [approved], [approved], [denied]]);
});

test('the checks of a new key that is left to the next call stay in order', async () => {
  const [lost] = await keysToServe(1, 500);
  await redis.client.del(lost!.state, lost!.replicas);
  const fresh = naming.namesOf('fresh');
  const work = async (): Promise<void> => {
    const verdicts = await decide(
      batch(lost!, ['a']),
      batch(fresh, ['b'], {}, { maxRequests: 1 }),
      batch(fresh, ['c']),
    );
    expect(verdicts.slice(1)).toEqual([[approved], [denied]]);
  };
  const calls = await elementsReadByCalls(redis.client, prefix, work);
  expect(calls).toHaveLength(2);
  expect(calls[0]).toBeGreaterThanOrEqual(MOST_READ);
});

test('a key that fails does not keep the others from their next call', async () => {
  const keys = await keysToRead(3);
  const wrong = naming.namesOf('wrong');
  await redis.client.set(wrong.state, 'a text', 'EX', 60);
  const replies = await scripts.inspect([wrong, ...keys]);
  expect(replies).toEqual([
    expect.any(Error),
    ...keys.map(() => expect.objectContaining({ held: HOLDS - 1 }) as unknown),
  ]);
});
