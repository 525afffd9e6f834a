import type { CheckBatchReply } from '../../../src/redis/scripts/check-codec.js';
import { editedFragment } from '../../support/edited-fragment.js';
import { TEST_LIMITS, type TestReplica } from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useKeyWithWaiters } from '../../support/use-key-with-waiters.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const { key, r1, wakes } = useKeyWithWaiters(redis);

const storedNumber = (): Promise<string | null> => redis.client.hget(key.names.state, 'wake');

/** The numbers of the wakes since the last call. */
async function published(): Promise<unknown[]> {
  return (await wakes.read()).map(({ number }) => number);
}

/** What Redis replies to a check that can wait. */
const checkOrWait = (replica: TestReplica, requestId: string): Promise<CheckBatchReply> =>
  replica.checkReply([{ requestId, canWait: true }]);

/** A replica of the version before, which does not know the numbers. */
function versionBefore(): TestReplica {
  return key.replica('before', {
    replacements: {
      ...editedFragment('lib/stored', ["'set_at', 'wake',", "'set_at',"]),
      ...editedFragment('lib/news', ['"number":%.0f,', ''], ['    state.wake,\n', '']),
      ...editedFragment('lib/instance', ["    more.set(state, 'wake', state.wake + 1)\n", '']),
    },
  });
}

test('each wake has the next number, and so have the state and the reply to the call that publishes it', async () => {
  expect([await storedNumber(), (await r1.settle()).wakeNumber]).toEqual(['0', 0]);
  await r1.release('a');
  expect([await storedNumber(), (await r1.settle()).wakeNumber]).toEqual(['1', 1]);
  await key.setTime(1000);
  expect((await r1.settle()).wakeNumber).toBe(2);
  expect([await storedNumber(), await published()]).toEqual(['2', [1, 2]]);
});

test('a message that is no wake has no number', async () => {
  await key.lose('queue');
  await r1.settle();
  expect([await published(), await storedNumber()]).toEqual([[undefined], '0']);
});

describe('the reply to checks', () => {
  test('has the number and the time if one of them has a place in the queue', async () => {
    await r1.release('a');
    await key.setTime(10);
    expect(await checkOrWait(r1, 'f')).toMatchObject({
      quota: { limits: [{ maximum: 2 }] },
      queueNews: { limits: '1000:2:3', wakeNumber: 1, at: key.startMillis + 10 },
    });
  });

  test('counts the wake that their own call publishes', async () => {
    await key.setTime(1000);
    expect((await checkOrWait(r1, 'f')).queueNews).toMatchObject({ wakeNumber: 1 });
    expect(await published()).toEqual([1]);
  });

  test('has them again if the checks are sent again', async () => {
    const again = await checkOrWait(key.replica('r1', { guard: sentAgain }), 'e');
    expect(again.verdicts).toEqual([key.absoluteTicket(3)]);
    expect(again.queueNews).toMatchObject({ wakeNumber: 0 });
  });

  test.each([
    ['cannot wait', false],
    ['finds the queue full', true],
  ])('does without if the check %s', async (_what, canWait) => {
    const reply = await r1.checkReply([{ requestId: 'f', canWait }]);
    expect(reply.queueNews).toBeUndefined();
  });

  test('has only the limits if they have no place in the queue of a key with further limits', async () => {
    const further = [
      { name: 'hourly', windowMillis: 9000, maximum: 9, counts: 'hits', keepsReleased: false },
    ] as const;
    const replica = key.replica('r1', { limits: { further } });
    expect(await replica.checkReply([{ requestId: 'f', canWait: false }])).toMatchObject({
      quota: { limits: [{ maximum: 2 }, { name: 'hourly', remaining: 9 }] },
      queueNews: undefined,
    });
  });
});

test('a key that is removed and made again begins with 0', async () => {
  await r1.release('a');
  await key.lose('state', 'queue', 'waiting', 'replicas');
  expect(await r1.settle({ e: 3 })).toMatchObject({ wakeNumber: 0, putBack: ['e'] });
});

test('numbers go on beside the version before, whose wakes have none', async () => {
  const before = versionBefore();
  await r1.release('a');
  expect(await published()).toEqual([1]);
  await before.release('b');
  expect([await published(), await storedNumber()]).toEqual([[undefined], '1']);
  await before.checkOrWait(['f']);
  await r1.release('c');
  expect([await published(), await storedNumber()]).toEqual([[2], '2']);
  await before.release('d');
  await before.withdraw(['f']);
  // Nobody waits any more, and windows pass.
  await key.setTime(2 * TEST_LIMITS.windowMillis);
  await before.check(['g', 'h']);
  expect(await storedNumber()).toBe('2');
  await before.checkOrWait(['i']);
  await r1.release('g');
  expect(await published()).toEqual([undefined, 3]);
});
