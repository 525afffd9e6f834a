import { StoreFullError } from '../../../../src/limiter/errors.js';
import type { CheckRequest, Decision, InstanceState } from '../../../../src/limiter/limiter.js';
import { type Algorithm, DEFAULT_ALGORITHM } from '../../../../src/limiter/kinds/kinds.js';
import { MemoryLimiter } from '../../../../src/limiter/memory/memory-limiter.js';
import { holdEventLoop } from '../../../support/hold-event-loop.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { keyLimits } from '../../../support/limits.js';
import { policiesWith } from '../../../support/policies.js';
import { requestIdOf } from '../../../support/request-id-of.js';
import { startCheck, type WatchedCheck } from '../../../support/watched-check.js';

describe('the embedded limiter', () => {
  const LIMITS = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 2 };

  /** A manual clock that knows how many timers are set. */
  class CountingClock extends ManualClock {
    timers = 0;

    override after(delayMillis: number, callback: () => void): () => void {
      this.timers += 1;
      let isSet = true;
      const unset = (): void => {
        if (isSet) this.timers -= 1;
        isSet = false;
      };
      const cancelTimer = super.after(delayMillis, () => {
        unset();
        callback();
      });
      return () => {
        unset();
        cancelTimer();
      };
    }
  }

  let clock: CountingClock;
  let limiter: MemoryLimiter;
  beforeEach(() => {
    clock = new CountingClock(0);
    limiter = new MemoryLimiter(
      policiesWith(() => LIMITS),
      clock,
    );
  });

  const check = (key: string, more: Partial<CheckRequest> = {}): Promise<Decision> =>
    limiter.check({ key, canWait: false, ...more });

  /** A request that can wait, and its decision once there is one. */
  interface Asked {
    decision: Decision | undefined;
    readonly settled: Promise<unknown>;
  }

  function checkOrWait(key: string): Asked {
    const asked: Asked = {
      decision: undefined,
      settled: limiter
        .check({ key, canWait: true })
        .then((decision) => (asked.decision = decision)),
    };
    return asked;
  }

  async function listed(): Promise<InstanceState[]> {
    const instances: InstanceState[] = [];
    for await (const page of limiter.list()) instances.push(...page);
    return instances;
  }

  async function approve(key: string): Promise<string> {
    return requestIdOf(await check(key));
  }

  describe('check', () => {
    test('counts in whole milliseconds', async () => {
      await clock.advance(0.9);
      await approve('k');
      await clock.advance(999);
      expect(await check('k')).toMatchObject({
        outcome: 'denied',
        quota: { limits: [{ resetMillis: 1 }] },
      });
      await clock.advance(0.1);
      expect((await check('k')).outcome).toBe('approved');
    });
  });

  describe('waiters', () => {
    test('set one timer for each key, which ends with the last waiter', async () => {
      await approve('k');
      const withoutWaiters = clock.timers;
      checkOrWait('k');
      checkOrWait('k');
      expect(clock.timers).toBe(withoutWaiters + 1);
      await clock.advance(1000);
      expect(clock.timers).toBe(withoutWaiters + 1);
      await clock.advance(1000);
      expect(limiter.waiting()).toBe(0);
      expect(clock.timers).toBe(withoutWaiters);
    });

    test('get a new timer when their timer fires early', async () => {
      let timers = 0;
      const early = new MemoryLimiter(
        policiesWith(() => LIMITS),
        {
          now: () => clock.now(),
          after: (delayMillis, callback) => {
            timers += 1;
            return clock.after(timers === 2 ? delayMillis - 1 : delayMillis, callback);
          },
        },
      );
      await early.check({ key: 'k', canWait: false });
      const decision = early.check({ key: 'k', canWait: true });
      await clock.advance(999);
      expect(timers).toBe(3);
      expect(early.waiting()).toBe(1);
      await clock.advance(1);
      expect(await decision).toMatchObject({ outcome: 'approved' });
    });
  });

  test('close fails the waiters of every key, and cancels every timer', async () => {
    await approve('a');
    await approve('b');
    const decisions = ['a', 'a', 'b'].map((key) => limiter.check({ key, canWait: true }));
    const turnedAway = decisions.map((decision) =>
      expect(decision).rejects.toMatchObject({ reason: 'shutting_down' }),
    );
    await limiter.close();
    await Promise.all(turnedAway);
    expect(limiter.waiting()).toBe(0);
    expect(clock.timers).toBe(0);
  });

  describe('idle keys', () => {
    test('are swept out of memory without another call', async () => {
      await approve('k');
      expect(clock.timers).toBe(1);
      await clock.advance(3999);
      expect(clock.timers).toBe(1);
      await clock.advance(1001);
      // The sweep runs while there are keys, so its end shows that there are none.
      expect(clock.timers).toBe(0);
      await approve('k');
      expect(clock.timers).toBe(1);
    });

    test('are freed with pauses if there are many, while others are kept', async () => {
      await Promise.all(Array.from({ length: 25_000 }, (_, i) => approve(`idle-${i}`)));
      await clock.advance(4000);
      await approve('busy');
      // Three parts with a pause after each but the last, then nothing until the next sweep.
      await clock.advance(1010);
      expect((await listed()).map(({ key }) => key)).toEqual(['busy']);
      await clock.advance(5010);
      expect(clock.timers).toBe(0);
    });

    test('are not listed before they are swept', async () => {
      await clock.advance(500);
      await approve('a');
      await clock.advance(1100);
      await approve('b');
      await clock.advance(2900);
      expect((await listed()).map(({ key }) => key)).toEqual(['b']);
    });
  });

  describe('the policy of a key', () => {
    const policiesCounting = (maxRequests: number) => {
      const asked: string[] = [];
      const policyOf = (key: string) => {
        asked.push(key);
        return keyLimits({ ...LIMITS, maxRequests });
      };
      return { asked, policyOf };
    };

    test('is asked for once, and again when the policies have changed', async () => {
      const [before, after] = [policiesCounting(1), policiesCounting(2)];
      const policies = { current: before };
      const ruled = new MemoryLimiter(policies, clock);
      const outcome = async () => (await ruled.check({ key: 'k', canWait: false })).outcome;
      expect([await outcome(), await outcome()]).toEqual(['approved', 'denied']);
      expect(ruled.policyOf('k').limits[0].maximum).toBe(1);
      expect(before.asked).toEqual(['k']);

      policies.current = after;
      expect(ruled.policyOf('k').limits[0].maximum).toBe(2);
      expect(await outcome()).toBe('approved');
      expect(after.asked).toEqual(['k']);
    });
  });

  describe('a bound on the memory', () => {
    /** Enough for a few keys with one id each. */
    const MAX_BYTES = 10_000;
    const MAX_REQUESTS = 1_000_000;
    const limits = { windowMillis: 60_000, maxRequests: MAX_REQUESTS, maxRequestsInQueue: 2 };
    beforeEach(() => {
      const policies = policiesWith((key) =>
        key === 'small' ? { ...limits, maxRequests: 1 } : limits,
      );
      limiter = new MemoryLimiter(policies, clock, { maxBytes: MAX_BYTES });
    });

    /** Approves until there is no memory. @returns how often */
    async function fillWith(keyOf: (count: number) => string): Promise<number> {
      for (let approved = 0; ; approved += 1) {
        try {
          await approve(keyOf(approved));
        } catch (error) {
          expect(error).toBeInstanceOf(StoreFullError);
          return approved;
        }
      }
    }

    test('holds for the ids of all keys together, until their windows end', async () => {
      expect(await limiter.ping()).toBe('ok');
      const first = await fillWith(() => 'a');
      expect(first).toBeGreaterThan(MAX_BYTES / 60);
      await fillWith((count) => `b-${count}`);
      expect(await limiter.ping()).toBe('full');

      await clock.advance(60_000);
      // The sweep has given back the memory of the window, without a check of its key.
      await clock.advance(1000);
      expect(await limiter.ping()).toBe('ok');
      expect(await fillWith(() => 'c')).toBeGreaterThan(first / 3);
    });

    test.each<[Algorithm]>([
      [DEFAULT_ALGORITHM],
      [{ name: 'sliding_window', steps: 2 }],
      [{ name: 'token_bucket', burst: MAX_REQUESTS }],
    ])('holds for the ids of further limits with %j, while they count', async (algorithm) => {
      const second = { name: 'second', windowMillis: 1000, maximum: MAX_REQUESTS, algorithm };
      const further = [{ ...second, counts: 'requests', keepsReleased: false } as const];
      const policies = policiesWith(() => ({ ...limits, further }));
      limiter = new MemoryLimiter(policies, clock, { maxBytes: MAX_BYTES });
      await fillWith(() => 'a');
      await fillWith((count) => `b-${count}`);
      expect(await limiter.ping()).toBe('full');
      // The sweep after the end of the short windows.
      await clock.advance(5000);
      expect(await limiter.ping()).toBe('ok');
    });

    test('gives back the memory of a key that a check finds idle', async () => {
      // Shorter than the time between two sweeps, so that none of them finds the key.
      const policies = policiesWith(() => ({ ...limits, windowMillis: 1 }));
      limiter = new MemoryLimiter(policies, clock, { maxBytes: MAX_BYTES });
      for (let round = 0; round < 100; round += 1) {
        await approve('a');
        await limiter.check({ key: 'a', canWait: false, holdMillis: 1 });
        await clock.advance(5);
      }
      expect(await limiter.ping()).toBe('ok');
    });

    test('holds for keys, whose memory is given back when they are idle', async () => {
      const keys = await fillWith((count) => `key-${count}`);
      expect(keys).toBeLessThan(10);
      // Existing keys are still decided.
      expect(await check('key-0')).toMatchObject({ outcome: 'approved' });

      await clock.advance(4 * 60_000 + 1000);
      expect(await limiter.ping()).toBe('ok');
      expect(await fillWith((count) => `other-${count}`)).toBe(keys);
    });

    test('still allows denials, and keeps the waiters', async () => {
      await approve('small');
      const asked = checkOrWait('small');
      await fillWith(() => 'a');
      expect(await check('small')).toMatchObject({ outcome: 'denied' });

      await clock.advance(60_000);
      await asked.settled;
      expect(asked.decision).toMatchObject({ outcome: 'approved' });
    });
  });

  test('rules that change are matched with the keys of waiters in several ticks', async () => {
    const keys = ['a', 'b', 'c', 'd'];
    let isSlow = false;
    let matched = 0;
    const policies = policiesWith(() => {
      matched += 1;
      if (isSlow) holdEventLoop(2);
      return { ...LIMITS, maxRequests: isSlow ? 2 : 1 };
    });
    limiter = new MemoryLimiter(policies, clock);
    for (const key of keys) await check(key);
    const asked = keys.map((key) => checkOrWait(key));
    isSlow = true;
    matched = 0;
    limiter.limitsChanged();
    const matchedAtOnce = matched;
    await Promise.all(asked.map(({ settled }) => settled));

    expect(asked.map(({ decision }) => decision?.outcome)).toEqual(Array(4).fill('approved'));
    expect(matched).toBeGreaterThanOrEqual(4 * matchedAtOnce);
  });

  describe('a peek', () => {
    test('sets no timer, and at a full limiter fails as a check of a new key would', async () => {
      limiter = new MemoryLimiter(
        policiesWith(() => LIMITS),
        clock,
        { maxKeys: 1 },
      );
      await limiter.ask('peek', { key: 'a' });
      expect(clock.timers).toBe(0);
      await check('a');
      await expect(limiter.ask('peek', { key: 'b' })).rejects.toBeInstanceOf(StoreFullError);
      expect(await limiter.ask('peek', { key: 'a' })).toMatchObject({ outcome: 'denied' });
      await clock.advance(500);
      expect(await limiter.ask('peek', { key: 'a' })).toMatchObject({ turnMillis: 500 });
    });

    test('is rejected after the end', async () => {
      await limiter.close();
      await expect(limiter.ask('peek', { key: 'a' })).rejects.toMatchObject({
        reason: 'shutting_down',
      });
    });
  });
});

describe('kept places of the embedded limiter', () => {
  const ID = '0197c3a2-8b1e-7f00-8d5a-111111111111';
  const OTHER_ID = '0197c3a2-8b1e-7f00-8d5a-222222222222';
  const THIRD_ID = '0197c3a2-8b1e-7f00-8d5a-333333333333';
  const KEEP = 5000;
  const LIMITS = keyLimits({ windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 9 });

  let clock: ManualClock;
  let limiter: MemoryLimiter;
  let unclaimed: number;
  function limiterFor(maxWaiters: number): MemoryLimiter {
    const observer = { unclaimed: (count: number) => (unclaimed += count) };
    return new MemoryLimiter(
      policiesWith(() => LIMITS),
      clock,
      { maxWaiters },
      observer,
    );
  }
  beforeEach(async () => {
    clock = new ManualClock(0);
    unclaimed = 0;
    limiter = limiterFor(1);
    await limiter.check({ key: 'key', canWait: false });
  });
  afterEach(() => limiter.close());

  const keep = (terms: Partial<CheckRequest> = {}): WatchedCheck =>
    startCheck(limiter, { key: 'key', canWait: true, requestId: ID, keepMillis: KEEP, ...terms });

  test('no more approvals are kept for their callers than ids are kept of when these come', async () => {
    const limits = keyLimits({ windowMillis: 60_000, maxRequests: 9, maxRequestsInQueue: 9 });
    const policies = policiesWith(() => limits);
    const bounded = new MemoryLimiter(policies, clock, { maxIdsPerKey: 2 });
    await bounded.ask('pause', { key: 'key', millis: 1000 });
    const places = [ID, OTHER_ID, THIRD_ID].map((requestId) =>
      startCheck(bounded, { key: 'key', canWait: true, requestId, keepMillis: KEEP }),
    );
    for (const place of places) place.disconnect();
    await clock.advance(1000);
    expect(await bounded.ask('inspect', { key: 'key' })).toMatchObject({ held: 2, waiting: 1 });
    await bounded.check({ key: 'key', canWait: false, requestId: ID });
    expect(await bounded.ask('inspect', { key: 'key' })).toMatchObject({ held: 1, waiting: 1 });
    await bounded.ask('release', { key: 'key', requestId: ID });
    expect(await bounded.ask('inspect', { key: 'key' })).toMatchObject({ held: 2, waiting: 0 });
    await bounded.close();
  });

  test('an approval that lapses is counted, also if no call of its key comes', async () => {
    keep().disconnect();
    await clock.advance(1000 + KEEP - 1);
    expect(unclaimed).toBe(0);
    // A sweep finds it within a second.
    await clock.advance(1001);
    expect(unclaimed).toBe(1);
    await clock.advance(10_000);
    expect(await limiter.ask('inspect', { key: 'key' })).toBeUndefined();
    expect(unclaimed).toBe(1);
  });

  describe('when its process is about to stop', () => {
    test('the places of callers that are gone end, and the others wait on', async () => {
      limiter = limiterFor(9);
      await limiter.check({ key: 'key', canWait: false });
      keep().disconnect();
      const there = keep({ requestId: OTHER_ID });
      limiter.handOver();
      expect(limiter.waiting()).toBe(1);
      await clock.advance(1000);
      expect(await there.decision).toMatchObject({ outcome: 'approved', requestId: OTHER_ID });
    });

    test('the places of callers that disconnect later end at once', () => {
      const kept = keep();
      limiter.handOver();
      kept.disconnect();
      expect(limiter.waiting()).toBe(0);
    });

    test('no place is kept after a check was told that it waits', async () => {
      limiter.handOver();
      expect(await keep({ answerMillis: 0 }).decision).toMatchObject({ outcome: 'waiting' });
      expect(limiter.waiting()).toBe(0);
    });
  });
});
