import { useScriptHarness, type Verdict } from '../../support/script-harness.js';
import { sentAgain } from '../../support/unguarded.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

const key = useScriptHarness(redis);
const replica = key.replica('r1');

/** Checks that can wait for so long, as one batch. */
const waitAtMost = (longest: Readonly<Record<string, number | undefined>>): Promise<Verdict[]> =>
  replica.checkBatch(
    Object.entries(longest).map(([requestId, maxWaitMillis]) => ({
      requestId,
      canWait: true,
      maxWaitMillis,
    })),
  );

test('each check of a batch has its own limit, and denied checks take no place', async () => {
  await replica.check(['a', 'b']);
  await key.setTime(400);
  const longest = { c: 599, d: 600, e: undefined, f: 1599, g: 1600 };
  expect(await waitAtMost(longest)).toEqual([
    'turn in 600 ms',
    400_000,
    400_001,
    'turn in 1600 ms',
    400_002,
  ]);
  expect(await key.stored()).toMatchObject({
    state: { approved: 2, denied: 0 },
    queue: [
      ['d@r1', 400_000],
      ['e@r1', 400_001],
      ['g@r1', 400_002],
    ],
  });
});

test('the limit of a check that does not wait is ignored in a batch', async () => {
  await replica.check(['a', 'b']);
  const batch = [
    { requestId: 'c', canWait: false, maxWaitMillis: 1 },
    { requestId: 'd', canWait: true, maxWaitMillis: 1000 },
    { requestId: 'e', canWait: false },
  ];
  expect(await replica.checkBatch(batch)).toEqual(['denied', 1, 'denied']);
});

test.each<[string, number, Verdict]>([
  ['comes at once if the window has room for all earlier waiters', 1301, 1_000_000],
  ['comes with the next window if not', 1100, 'turn in 1000 ms'],
])('while the queue is served in parts, a turn %s', async (_what, maxRequests, verdict) => {
  await replica.check(['a', 'b'], { maxRequests: 2, maxRequestsInQueue: 2000 });
  await key.setTime(1);
  await replica.checkOrWait(Array.from({ length: 1200 }, (_, i) => `w${i}`));
  await key.setTime(1000);
  // Each call serves 500.
  await replica.check(['c'], { maxRequests });
  const [reply] = await waitAtMost({ x: 0 });
  expect(await key.stored()).toMatchObject({ state: { approved: 1000, isServing: true } });
  expect(reply).toBe(verdict);
});

test('waiters of dead replicas do not count', async () => {
  await replica.check(['a', 'b']);
  await key.replica('dead').checkOrWait(['w', 'x']);
  await key.setTime(3500);
  await replica.check(['c', 'd']);
  expect(await waitAtMost({ e: 499 })).toEqual(['turn in 500 ms']);
});

test('a call that is sent again gives the same place', async () => {
  await replica.check(['a', 'b']);
  expect(await waitAtMost({ c: 1000 })).toEqual([1]);
  await key.setTime(10);
  const again = { requestId: 'c', canWait: true, maxWaitMillis: 5 };
  expect(await key.replica('r1', { guard: sentAgain }).checkBatch([again])).toEqual([1]);
});
