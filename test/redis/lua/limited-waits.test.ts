import { useScriptHarness, type Verdict } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);
const replica = key.replica('r1');

const wait = (requestId: string, maxWaitMillis?: number) => ({
  requestId,
  canWait: true,
  maxWaitMillis,
});

test('each check of a batch that waits has its own limit, and denied checks take no place', async () => {
  await replica.check(['a', 'b']);
  const checks = [
    wait('c', 599),
    wait('d', 600),
    { ...wait('e', 1), canWait: false },
    wait('f'),
    wait('g', 1599),
    wait('h', 1600),
  ];
  await key.setTime(400);
  expect(await replica.checkBatch(checks)).toEqual([
    'turn in 600 ms',
    400_000,
    'denied',
    400_001,
    'turn in 1600 ms',
    400_002,
  ]);
  expect(await key.queued()).toEqual(['d@r1', 'f@r1', 'h@r1']);
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
  const [reply] = await replica.checkBatch([wait('x', 0)]);
  expect(await key.stored()).toMatchObject({ state: { approved: 1000, isServing: true } });
  expect(reply).toBe(verdict);
});

test('waiters of dead replicas do not count', async () => {
  await replica.check(['a', 'b']);
  await key.replica('dead').checkOrWait(['w', 'x']);
  await key.setTime(3500);
  await replica.check(['c', 'd']);
  expect(await replica.checkBatch([wait('e', 499)])).toEqual(['turn in 500 ms']);
});
