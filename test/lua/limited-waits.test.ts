import { ScriptHarness, type TestReplica, type Verdict } from '../support/script-harness.js';
import { useRedis } from '../support/use-redis.js';

const redis = useRedis();

let key: ScriptHarness;
let replica: TestReplica;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  replica = key.replica('r1');
});

/** Checks that can wait for so long, as one batch. */
const waitAtMost = (longest: Readonly<Record<string, number | undefined>>): Promise<Verdict[]> =>
  replica.checkBatch(
    Object.entries(longest).map(([requestId, maxWaitMillis]) => ({
      requestId,
      canWait: true,
      maxWaitMillis,
    })),
  );

test('each check of a batch has a limit of its own, and those refused take no place', async () => {
  await replica.check(['a', 'b']);
  await key.setTime(400);
  const longest = { c: 599, d: 600, e: undefined, f: 1599, g: 1600 };
  expect(await waitAtMost(longest)).toEqual(['turn in 600 ms', 400_000, 400_001, 'turn in 1600 ms', 400_002]);
  expect(await key.stored()).toMatchObject({
    state: { approved: 2, denied: 0 },
    queue: [['d@r1', 400_000], ['e@r1', 400_001], ['g@r1', 400_002]],
  });
});

test('the limit of a check that does not wait in a batch of others says nothing', async () => {
  await replica.check(['a', 'b']);
  const batch = [
    { requestId: 'c', canWait: false, maxWaitMillis: 1 },
    { requestId: 'd', canWait: true, maxWaitMillis: 1000 },
    { requestId: 'e', canWait: false },
  ];
  expect(await replica.checkBatch(batch)).toEqual(['denied', 1, 'denied']);
});

test('a window with room left, since the queue is served in parts, counts as a turn', async () => {
  await replica.check(['a', 'b'], { maxRequests: 2, maxRequestsInQueue: 2000 });
  const waiting = Array.from({ length: 600 }, (_, i) => `w${i}`);
  await replica.checkOrWait(waiting);
  await key.setTime(1000);
  // 500 of 600 are served by one call.
  await replica.check(['c'], { maxRequests: 602 });
  expect(await key.stored()).toMatchObject({ state: { approved: 500, isServing: true } });
  // A check serves the rest before it is decided.
  expect(await waitAtMost({ x: 0 })).toEqual(['approved']);
});

test('waiters of dead replicas do not count', async () => {
  await replica.check(['a', 'b']);
  await key.replica('dead').checkOrWait(['w', 'x']);
  await key.setTime(3500);
  await replica.check(['c', 'd']);
  expect(await waitAtMost({ e: 499 })).toEqual(['turn in 500 ms']);
});

test('a call that is sent again gives the place that it gave', async () => {
  await replica.check(['a', 'b']);
  expect(await waitAtMost({ c: 1000 })).toEqual([1]);
  await key.setTime(10);
  const again = { requestId: 'c', canWait: true, maxWaitMillis: 5 };
  expect(await key.replica('r1', { isSentAgain: true }).checkBatch([again])).toEqual([1]);
});
