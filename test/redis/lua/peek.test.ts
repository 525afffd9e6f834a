import fc from 'fast-check';

import { ZonedCalendar } from '../../../src/limiter/calendar/zoned-calendar.js';
import type { PeekRequest } from '../../../src/limiter/limiter.js';
import { type Algorithm, FIXED_WINDOW } from '../../../src/limiter/limits.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import { extent } from '../../support/extent.js';
import { group, lane } from '../../support/instance-in-memory.js';
import { contentsOfKey } from '../../support/key-contents.js';
import { type TestReplica, useScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const key = useScriptHarness(redis);

const contents = (): Promise<unknown[]> => contentsOfKey(redis.client, key.names.state);

/** Peeks, which must leave everything as it is. */
async function peek(replica: TestReplica, request?: Omit<PeekRequest, 'key'>): Promise<string> {
  const before = await contents();
  const said = await replica.peek(request);
  expect(await contents()).toEqual(before);
  return String(said);
}

/** What a check gets that joins the queue only if its turn comes at once. */
async function check(replica: TestReplica, request: Omit<PeekRequest, 'key'>): Promise<string> {
  const joining = { requestId: 'checked', canWait: true, maxWaitMillis: 0, ...request };
  const [verdict] = await replica.checkBatch([joining]);
  return String(verdict);
}

interface Step {
  readonly kind: 'check' | 'wait' | 'withdraw' | 'settle' | 'pause';
  readonly replica: number;
  readonly afterMillis: number;
  readonly hits: number;
  readonly holdMillis: number | undefined;
  /** Of the lists of the scene. */
  readonly list: number;
}

/** What the rules of a key say now and then, the first one most often. */
const LISTS: readonly (readonly (QueueList | undefined)[])[] = [
  [undefined],
  [lane('a'), lane('b', 700), lane('c', 30_000)],
  [group('x'), group('y', 3)],
  [lane('a'), lane('b', 700), undefined, lane('a', 900), group('x')],
];

const hits = fc.constantFrom(1, 1, 1, 2, 3);
const holdMillis = fc.constantFrom(undefined, undefined, undefined, 700, 2500);
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('check', 'check', 'wait', 'wait', 'wait', 'withdraw', 'settle', 'pause'),
  replica: fc.nat({ max: 1 }),
  afterMillis: fc.constantFrom(0, 0, 1, 90, 400, 1000, 1700),
  hits,
  holdMillis,
  list: fc.nat({ max: 4 }),
});
const algorithm: fc.Arbitrary<Algorithm> = fc.constantFrom<Algorithm>(
  FIXED_WINDOW,
  FIXED_WINDOW,
  { name: 'sliding_window', steps: 5 },
  { name: 'token_bucket', burst: 3 },
);
const scene = fc.record({
  algorithm,
  further: algorithm,
  hasFurther: fc.boolean(),
  lanes: fc.constantFrom(undefined, ['a'], ['a', 'b']),
  lists: fc.constantFrom(...LISTS),
  maxRequests: fc.integer({ min: 1, max: 4 }),
  steps: fc.array(step, { maxLength: 12, size: 'max' }),
  /** Also so long that the waiters of silent replicas count no longer, or that the key is idle. */
  afterMillis: fc.constantFrom(0, 1, 350, 999, 1000, 1001, 2600, 4000, 6000, 12_000, 90_000, -600),
  asked: fc.record({ hits, holdMillis, list: fc.nat({ max: 4 }) }),
});

test('a peek says what a check gets, also before anybody has served the queue, and writes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(scene, async (drawn) => {
      await key.begin();
      const { maxRequests, hasFurther, further } = drawn;
      const second = {
        name: 'second',
        windowMillis: 2500,
        maximum: maxRequests + 2,
        algorithm: further,
        counts: 'hits',
        keepsReleased: true,
        ...(drawn.lanes && { lanes: drawn.lanes }),
      } as const;
      const listOf = (each: Pick<Step, 'list'>) => drawn.lists[each.list % drawn.lists.length];
      const limits = {
        algorithm: drawn.algorithm,
        maxRequests,
        maxRequestsInQueue: 100,
        ...(hasFurther && { further: [second] }),
      };
      const replicas = [key.replica('r1', { limits }), key.replica('r2', { limits })] as const;
      const withdraw = (i: number): Promise<void> =>
        replicas[drawn.steps[i]!.replica]!.withdraw([`${i}`]);
      let now = 0;
      for (const [i, each] of drawn.steps.entries()) {
        await key.setTimeInSilence((now += each.afterMillis));
        const replica = replicas[each.replica]!;
        // After the clock has gone back, only a script that writes makes holds shorter.
        const holdMillis = drawn.afterMillis < 0 ? undefined : each.holdMillis;
        const terms = { requestId: `${i}`, hits: each.hits, holdMillis, list: listOf(each) };
        if (each.kind === 'withdraw') await withdraw(Math.floor(i / 2));
        else if (each.kind === 'settle') await replica.settle();
        else if (each.kind === 'pause') await replica.pause(i % 2 === 0 ? 0 : 600);
        else await replica.checkBatch([{ ...terms, canWait: each.kind === 'wait' }]);
      }
      await key.setTimeInSilence(now + drawn.afterMillis);
      const asked = { ...drawn.asked, list: listOf(drawn.asked) };
      const said = await peek(replicas[0], asked);
      expect(await check(replicas[0], asked)).toBe(said);
    }),
    { numRuns: extent(100, 400) },
  );
});

test('a peek at a key that does not exist creates none', async () => {
  expect(await peek(key.replica('r1'))).toBe('approved');
  expect((await key.stored()).expiry).toEqual({});
});

test('waiters whose turn has come are served before a check, each with all of its hits', async () => {
  const replica = key.replica('r1', { limits: { maxRequests: 4 } });
  await replica.checkHits('a', 4);
  await replica.checkHits('b', 3, { canWait: true });
  await key.setTime(1000);
  expect([await peek(replica), await peek(replica, { hits: 2 })]).toEqual([
    'approved',
    'turn in 1000 ms',
  ]);
  await replica.checkHits('c', 2, { canWait: true });
  await key.setTime(1999);
  expect(await peek(replica)).toBe('turn in 1 ms');
});

test('while more wait than a call serves, a check is denied', async () => {
  const replica = key.replica('r1', { limits: { maxRequests: 1000, maxRequestsInQueue: 2000 } });
  await replica.checkHits('a', 1000);
  await replica.checkOrWait(Array.from({ length: 501 }, (_, i) => `w${i}`));
  await key.setTime(1000);
  expect(await peek(replica)).toBe('turn in 0 ms');
  await replica.withdraw(['w0']);
  expect(await peek(replica)).toBe('approved');
});

describe('with several lists', () => {
  const [A, B, OTHER] = [lane('a'), lane('b', 30_000), lane('other', 60_000)];
  const withLimit = (maxRequests: number, ...lanes: string[]) => {
    const ofLanes = { name: 'of lanes', windowMillis: 9000, maximum: 2, counts: 'hits' } as const;
    return { maxRequests, further: [{ ...ofLanes, keepsReleased: false, lanes }] };
  };
  const join = (replica: TestReplica, requestId: string, hits: number, list?: QueueList) =>
    replica.checkBatch([{ requestId, canWait: true, hits, list }]);
  const expectTold = async (replica: TestReplica, list: QueueList | undefined, said: string) => {
    expect(await peek(replica, { list })).toBe(said);
    expect(await check(replica, { list })).toBe(said);
  };

  test('a check passes nobody who waits by other rules once the lanes before them are served', async () => {
    const replica = key.replica('r1', { limits: { maxRequests: 2 } });
    await join(replica, 'first', 2, A);
    await join(replica, 'of lane', 1, A);
    await join(replica, 'large', 2);
    await key.setTime(1000);
    await expectTold(replica, A, 'turn in 1000 ms');
  });

  test('a check without a lane passes nobody without one who needs more than there is', async () => {
    const replica = key.replica('r1', { limits: { maxRequests: 2 } });
    await join(replica, 'first', 2, A);
    await join(replica, 'of lane', 1, A);
    await join(replica, 'large', 2);
    await key.setTime(1000);
    await expectTold(replica, undefined, 'turn in 1000 ms');
  });

  test.each([
    ['without a lane', undefined],
    ['of a group', group('x')],
    ['of another lane', B],
  ])(
    'a check %s passes lanes that only a limit of theirs stops, once those before them are served',
    async (_, list) => {
      const replica = key.replica('r1', { limits: withLimit(5, 'a') });
      await join(replica, 'first', 5, B);
      await join(replica, 'none', 1);
      await join(replica, 'a1', 2, A);
      await join(replica, 'a2', 1, A);
      await key.setTime(1000);
      await expectTold(replica, list, 'approved');
    },
  );

  test('the waiters of a dead replica in the lane of a check stop it no longer', async () => {
    const limits = withLimit(9, 'a', 'other');
    const replica = key.replica('r1', { limits });
    const dead = key.replica('dead', { limits, leaseMillis: 100 });
    await join(replica, 'first', 1, A);
    await join(replica, 'large', 2, A);
    await join(dead, 'of dead', 2, OTHER);
    await key.setTime(500);
    await expectTold(replica, OTHER, 'approved');
  });
});

test('a key that recovers denies until then', async () => {
  const silent = key.replica('silent', { limits: { windowMillis: 6000, maxRequests: 1 } });
  await silent.check(['a']);
  await silent.checkOrWait(['b']);
  await key.setTime(6000);
  const other = key.replica('other', { limits: { windowMillis: 6000, maxRequests: 1 } });
  expect(await peek(other)).toBe('turn in 6000 ms');
  expect(await check(other, {})).toBe('turn in 6000 ms');
  expect((await key.stored()).state).toMatchObject({ holdUntil: 6500 });
});

test('a key that has lost its state serves the waiters that another replica has taken over', async () => {
  const [r1, r2] = [key.replica('r1'), key.replica('r2')];
  const named = { requestId: 'named', canWait: true };
  await r1.check(['a', 'b']);
  await r1.checkBatch([{ ...named, number: 1 }]);
  await r2.checkBatch([{ ...named, number: 1 }]);
  await key.lose('state');
  const said = await Promise.all([peek(r1), peek(r1, { hits: 2 })]);
  expect(said).toEqual(['approved', 'turn in 1000 ms']);
  expect(await check(r1, { hits: 2 })).toBe(said[1]);
});

test('a replica whose time is out of date brings the windows of its calendars again', async () => {
  const DAY = 24 * 3_600_000;
  await key.begin(Date.UTC(new Date().getUTCFullYear() + 1, 5, 1));
  const limits = {
    algorithm: { name: 'fixed_window', calendar: new ZonedCalendar('day', 'UTC') } as const,
    windowMillis: DAY,
    maxRequests: 1,
  };
  const replica = key.replica('r1', { limits, knownMillis: -9 * DAY });
  expect(await peek(replica)).toBe('approved');
  await replica.check(['a']);
  await key.setTime(DAY - 1);
  expect(await peek(replica)).toBe('turn in 1 ms');
  await key.setTime(DAY);
  expect(await peek(replica)).toBe('approved');
});

test('a request has set a maximum that later rules forbid', async () => {
  await key.replica('r1').checkHits('a', 3, { maxRequests: 9 });
  expect(await peek(key.replica('r1'), { hits: 5 })).toBe('approved');
  const ceilings = { maxRequests: 8, maxRequestsInQueue: 0, windowMillis: 0 };
  const other = key.replica('r2', { limits: { maxRequests: 4, ceilings } });
  expect([await peek(other), await peek(other, { hits: 2 })]).toEqual([
    'approved',
    'turn in 1000 ms',
  ]);
});
