import { randomUUID } from 'node:crypto';

import { StoreUnavailableError, UnavailableError } from '../../../../src/limiter/errors.js';
import type { Decision, InstanceState, Limiter } from '../../../../src/limiter/limiter.js';
import { MemoryLimiter } from '../../../../src/limiter/memory/memory-limiter.js';
import { OutageLimiter } from '../../../../src/limiter/outage/outage-limiter.js';
import { OutageLog } from '../../../../src/limiter/outage/outage-log.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';
import { requestIdOf } from '../../../support/request-id-of.js';
import { instance, StoreLimiterStub } from '../../../support/store-limiter-stub.js';
import { startCheck } from '../../../support/watched-check.js';
import { quotaOf } from '../../../support/quota.js';
import { policiesWith } from '../../../support/policies.js';
import type { DeclaredLimits } from '../../../support/limits.js';
import type { CallerPresence } from '../../../../src/limiter/request.js';

describe('the outage policy', () => {
  const ALLOWED = { outcome: 'approved', outagePolicy: 'allow' };
  const APPROVED_LOCALLY = { outcome: 'approved', outagePolicy: 'local' };
  const REFUSED_LOCALLY = { outcome: 'denied', reason: 'limit_reached', outagePolicy: 'local' };

  let clock: ManualClock;
  let store: StoreLimiterStub;
  let local: MemoryLimiter;
  let log: RecordedLog;
  /** Those of each key, for the replica alone. */
  let limits: DeclaredLimits;
  /** With the policies `allow` and `local`. */
  let allowing: OutageLimiter;
  let deciding: OutageLimiter;
  beforeEach(() => {
    clock = new ManualClock(0);
    store = new StoreLimiterStub();
    log = recordLog();
    limits = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 1 };
    local = new MemoryLimiter(
      policiesWith(() => limits),
      clock,
    );
    allowing = new OutageLimiter(
      store,
      undefined,
      new OutageLog('allow', clock, log.logger),
      clock,
    );
    deciding = new OutageLimiter(store, local, new OutageLog('local', clock, log.logger), clock);
  });
  afterEach(() => local.close());

  const check = (limiter: OutageLimiter, key = 'key'): Promise<Decision> =>
    limiter.check({ key, canWait: false });

  async function pagesOf(limiter: OutageLimiter): Promise<(readonly InstanceState[])[]> {
    const pages = [];
    for await (const page of limiter.list()) pages.push(page);
    return pages;
  }

  /** The request id of an approval by this replica alone. */
  async function approveLocally(): Promise<string> {
    store.goDown('key');
    return requestIdOf(await check(deciding));
  }

  describe('while the store can be asked', () => {
    test.each<[what: string, decision: Decision]>([
      ['approved', { outcome: 'approved', requestId: 'id' }],
      ['denied', { outcome: 'denied', reason: 'limit_reached', quota: quotaOf(7) }],
    ])('the store decides: %s', async (_what, decision) => {
      for (const canWait of [false, true]) {
        const request = { key: 'key', canWait, maxRequests: 3, maxRequestsInQueue: 4 };
        const { decision: decided } = startCheck(deciding, request);
        const asked = store.asked.at(-1)!;
        asked.waiter.decide(decision);
        expect(asked.request).toEqual(request);
        expect(await decided).toEqual(decision);
      }
      expect(await local.ask('inspect', { key: 'key' })).toBeUndefined();
      expect(log.lines).toEqual([]);
    });

    test.each([
      ['a fault', new Error('wrong type')],
      ['the end of the replica', new UnavailableError('shutting_down')],
    ])('the policy does not decide after %s', async (_what, error) => {
      for (const canWait of [false, true]) {
        const { decision } = startCheck(allowing, { key: 'key', canWait });
        store.asked.at(-1)!.waiter.fail(error);
        await expect(decision).rejects.toBe(error);
      }
      expect(log.lines).toEqual([]);
    });

    test('the waiters of store and replica are counted together', async () => {
      await approveLocally();
      startCheck(deciding, { key: 'key', canWait: true }).decision.catch(() => undefined);
      await new Promise(setImmediate);
      startCheck(deciding, { key: 'other', canWait: true }).decision.catch(() => undefined);
      expect([store.waiting(), local.waiting(), deciding.waiting()]).toEqual([1, 1, 2]);
      expect([deciding.waiting('key'), deciding.waiting('other')]).toEqual([1, 1]);
    });
  });

  describe('while the store is down', () => {
    beforeEach(() => {
      store.goDown('key');
    });

    test('a peek says what the policy would decide, which the log does not count', async () => {
      expect(await allowing.ask('peek', { key: 'key' })).toEqual(ALLOWED);
      expect(await deciding.ask('peek', { key: 'key' })).toMatchObject(APPROVED_LOCALLY);
      expect(log.lines).toEqual([]);
      expect(await local.ask('inspect', { key: 'key' })).toBeUndefined();
      await check(deciding);
      expect(await deciding.ask('peek', { key: 'key' })).toMatchObject({
        ...REFUSED_LOCALLY,
        turnMillis: 1000,
      });
      expect(await deciding.ask('peek', { key: 'other' })).toEqual({ outcome: 'approved' });
    });

    test('a peek is rejected once the limiter closes', async () => {
      await allowing.close();
      await expect(allowing.ask('peek', { key: 'key' })).rejects.toMatchObject({
        reason: 'shutting_down',
      });
    });

    test('the store decides other keys if it can be asked about them', async () => {
      const { decision } = startCheck(deciding, { key: 'other' });
      store.asked[0]!.waiter.approve();
      expect(await decision).toEqual({ outcome: 'approved', requestId: 'id 0' });
    });

    test('a client that disconnects does not count as a decision of the store', async () => {
      await check(allowing);
      await clock.advance(1000);
      store.comeBack();
      const waiting = startCheck(allowing, { key: 'key', canWait: true });
      waiting.disconnect();
      await waiting.decision;
      expect(log.messages).toEqual(['the outage policy decides']);
    });
  });

  describe('an approval is released', () => {
    test('once, with all of its hits, by the replica that gave it', async () => {
      store.goDown('key');
      const terms = { hits: 2, maxRequests: 3 };
      const requestId = requestIdOf(await deciding.check({ key: 'key', canWait: false, ...terms }));
      expect(await local.ask('inspect', { key: 'key' })).toMatchObject({ limits: [{ used: 2 }] });
      store.comeBack();
      expect(await deciding.ask('release', { key: 'key', requestId })).toBe(true);
      expect(store.released).toEqual([]);
      expect(await local.ask('inspect', { key: 'key' })).toMatchObject({ limits: [{ used: 0 }] });
      expect(await deciding.ask('release', { key: 'key', requestId })).toBe(false);
    });

    test('not at all while the store that may know it is down', async () => {
      await approveLocally();
      for (const limiter of [allowing, deciding]) {
        await expect(limiter.ask('release', { key: 'key', requestId: 'id 0' })).rejects.toThrow(
          StoreUnavailableError,
        );
      }
    });
  });

  test('an approval that nobody has got counts in no limit of the replica that gave it', async () => {
    const starts = { name: 'starts', windowMillis: 1000, maximum: 1, counts: 'requests' } as const;
    limits = { ...limits, further: [{ ...starts, keepsReleased: true }] };
    const requestId = await approveLocally();
    void deciding.ask('giveBack', { key: 'key', claim: requestId });
    expect(await local.ask('inspect', { key: 'key' })).toMatchObject({
      limits: [{ used: 0 }, { used: 0 }],
    });
  });

  test('an approval of a chosen request id is given back by its own check', async () => {
    store.goDown('key');
    const ask = (): Promise<Decision> =>
      deciding.check({ key: 'key', canWait: false, requestId: randomUUID() });
    const decision = await ask();
    expect(decision).toMatchObject(APPROVED_LOCALLY);
    void deciding.ask('giveBack', { key: 'key', claim: (decision as { claim: string }).claim });
    expect(await local.ask('inspect', { key: 'key' })).toMatchObject({ limits: [{ used: 0 }] });
    expect(await ask()).toMatchObject(APPROVED_LOCALLY);
  });

  describe('the visible state', () => {
    test('comes from the store', async () => {
      await approveLocally();
      store.comeBack();
      store.pages = () => pages([instance('a')], [instance('b')]);
      expect(await deciding.ask('inspect', { key: 'key' })).toEqual(instance('key'));
      expect(await deciding.ask('examine', { key: 'key', mostQueued: 1 })).toMatchObject(
        instance('key'),
      );
      expect(await pagesOf(deciding)).toEqual([[instance('a')], [instance('b')]]);
    });

    test('comes from this replica while the store is down, with the policy local', async () => {
      await approveLocally();
      store.pages = () => pages(new StoreUnavailableError());
      expect(await deciding.ask('inspect', { key: 'key' })).toMatchObject({
        key: 'key',
        limits: [{ used: 1 }],
      });
      expect(await deciding.ask('examine', { key: 'key', mostQueued: 1 })).toMatchObject({
        key: 'key',
        limits: [{ used: 1 }],
      });
      expect(await pagesOf(deciding)).toMatchObject([[{ key: 'key', limits: [{ used: 1 }] }]]);
    });

    test('is unavailable while the store is down, with the policy allow', async () => {
      store.goDown('key');
      store.pages = () => pages(new StoreUnavailableError());
      await expect(allowing.ask('inspect', { key: 'key' })).rejects.toThrow(StoreUnavailableError);
      await expect(allowing.ask('examine', { key: 'key', mostQueued: 1 })).rejects.toThrow(
        StoreUnavailableError,
      );
      await expect(pagesOf(allowing)).rejects.toThrow(StoreUnavailableError);
    });

    test('never mixes store and replica in one list', async () => {
      await approveLocally();
      store.pages = () => pages([instance('a')], new StoreUnavailableError());
      await expect(pagesOf(deciding)).rejects.toThrow(StoreUnavailableError);
    });

    test('does not come from this replica if the store has a fault', async () => {
      const fault = new Error('wrong type');
      store.pages = () => pages(fault);
      await expect(pagesOf(deciding)).rejects.toBe(fault);
    });

    // eslint-disable-next-line @typescript-eslint/require-await -- the interface requires it
    async function* pages(
      ...items: (readonly InstanceState[] | Error)[]
    ): AsyncIterable<readonly InstanceState[]> {
      for (const item of items) {
        if (item instanceof Error) throw item;
        yield item;
      }
    }
  });

  test('a change of the limits serves waiters of the replica, and reaches the store', async () => {
    await approveLocally();
    const waiting = startCheck(deciding, { key: 'key', canWait: true });
    await new Promise(setImmediate);
    limits = { ...limits, maxRequests: 2 };
    deciding.limitsChanged();
    expect(await waiting.decision).toMatchObject(APPROVED_LOCALLY);
    expect(store.limitChanges).toBe(1);
  });

  describe('a limiter that is closed', () => {
    test('fails the waiters in the store and on the replica', async () => {
      const inStore = startCheck(deciding, { key: 'other', canWait: true });
      await approveLocally();
      const here = startCheck(deciding, { key: 'key', canWait: true });
      await new Promise(setImmediate);
      const turnedAway = [inStore, here].map(({ decision }) =>
        expect(decision).rejects.toMatchObject({ reason: 'shutting_down' }),
      );
      await deciding.close();
      await Promise.all(turnedAway);
      expect(store.isClosed).toBe(true);
    });

    test.each([false, true])('approves no further check (can wait: %s)', async (canWait) => {
      await Promise.all([allowing.close(), deciding.close()]);
      store.goDown('key');
      for (const limiter of [allowing, deciding]) {
        await expect(limiter.check({ key: 'key', canWait })).rejects.toMatchObject({
          reason: 'shutting_down',
        });
      }
    });
  });

  describe('a check whose place is kept', () => {
    const request = { key: 'key', canWait: true, requestId: 'id 0', keepMillis: 5000 };

    test('is decided by the store alone, also in an outage', async () => {
      const waiting = startCheck(allowing, request);
      store.goDown('key');
      await expect(allowing.check(request)).rejects.toBeInstanceOf(StoreUnavailableError);
      expect(waiting.settled).toBeUndefined();
      store.asked[0]!.waiter.approve();
      expect(await waiting.decision).toEqual({ outcome: 'approved', requestId: 'id 0' });
      expect(log.messages).toEqual([]);
    });

    test('takes one of the places until its request no longer waits', async () => {
      const bounded = new OutageLimiter(
        store,
        undefined,
        new OutageLog('allow', clock, log.logger),
        clock,
        1,
      );
      const asked = (): boolean | undefined => store.asked.at(-1)?.request.noPlace;
      const kept = bounded.check(request);
      store.asked[0]!.waiter.decide({ outcome: 'waiting', requestId: 'id 0', place: undefined });
      await kept;
      void bounded.check({ key: 'key', canWait: true });
      expect(asked()).toBe(true);
      void bounded.check(request);
      expect(asked()).toBeUndefined();
      store.asked[0]!.request.onPlaceEnded?.();
      void bounded.check({ key: 'key', canWait: true });
      expect(asked()).toBe(true);
      store.asked[2]!.waiter.decide({ outcome: 'withdrawn' });
      await store.asked[2]!.waiter.decision;
      await new Promise(setImmediate);
      void bounded.check({ key: 'key', canWait: true });
      expect(asked()).toBeUndefined();
    });

    test('is handed over by the store', () => {
      allowing.handOver();
      expect(store.isHandedOver).toBe(true);
    });
  });
});

describe('the log of outages', () => {
  const BEGUN = 'the outage policy decides';
  const OVER = 'the store decides again';

  let clock: ManualClock;
  let log: RecordedLog;
  let outages: OutageLog;
  beforeEach(() => {
    clock = new ManualClock(0);
    log = recordLog();
    outages = new OutageLog('local', clock, log.logger);
  });

  test('nothing is logged while the store decides', async () => {
    outages.storeDecided();
    await clock.advance(10_000);
    outages.storeDecided();
    expect(log.lines).toEqual([]);
  });

  test('the first decision of the policy is logged, and no other', async () => {
    for (let i = 0; i < 100; i += 1) {
      outages.policyDecides();
      await clock.advance(10_000);
    }
    expect(log.lines).toMatchObject([{ level: 'warn', msg: BEGUN, policy: 'local' }]);
  });

  test("the first decision of the store is logged, with the number of the policy's decisions", async () => {
    for (let i = 0; i < 100; i += 1) outages.policyDecides();
    await clock.advance(1000);
    for (let i = 0; i < 100; i += 1) outages.storeDecided();
    expect(log.lines.slice(1)).toMatchObject([
      { level: 'info', msg: OVER, policy: 'local', decisions: 100 },
    ]);
  });

  test('not every change between store and policy is logged', async () => {
    for (let i = 0; i < 100; i += 1) {
      outages.policyDecides();
      await clock.advance(999);
      outages.storeDecided();
    }
    expect(log.messages).toEqual([BEGUN]);
    await clock.advance(1);
    outages.storeDecided();
    expect(log.messages).toEqual([BEGUN, OVER]);
  });

  test('the next outage is logged again, and counted from its start', async () => {
    for (const decisions of [3, 2]) {
      for (let i = 0; i < decisions; i += 1) outages.policyDecides();
      await clock.advance(1000);
      outages.storeDecided();
    }
    expect(log.messages).toEqual([BEGUN, OVER, BEGUN, OVER]);
    expect(log.lines.map(({ decisions }) => decisions)).toEqual([undefined, 3, undefined, 2]);
  });
});

describe('the bound of waiters', () => {
  const LIMITS = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 100 };
  const MAX_WAITERS = 2;

  let clock: ManualClock;
  let opened: Limiter[];
  beforeEach(() => {
    clock = new ManualClock(0);
    opened = [];
  });
  afterEach(() => Promise.all(opened.map((limiter) => limiter.close())));

  /** A check that can wait. A test that awaits its decision gets the error. */
  function wait(limiter: Limiter, key: string, caller?: CallerPresence): Promise<Decision> {
    const decision = limiter.check({ key, canWait: true }, caller);
    decision.catch(() => undefined);
    return decision;
  }

  async function expectTooMany(limiter: Limiter, key: string): Promise<void> {
    await expect(wait(limiter, key)).rejects.toMatchObject({ reason: 'too_many_waiters' });
  }

  describe('the embedded limiter', () => {
    let limiter: MemoryLimiter;
    beforeEach(() => {
      limiter = new MemoryLimiter(
        policiesWith(() => LIMITS),
        clock,
        { maxWaiters: MAX_WAITERS },
      );
      opened.push(limiter);
    });

    test('has a place for a check that takes one over, and for no other', async () => {
      await limiter.check({ key: 'a', canWait: false });
      const requestId = randomUUID();
      const ask = (key: string): Promise<Decision> =>
        limiter.check({ key, canWait: true, requestId });
      const earlier = ask('a');
      void wait(limiter, 'a');
      const later = ask('a');
      await expect(earlier).rejects.toMatchObject({ conflict: 'taken_over' });
      await limiter.check({ key: 'b', canWait: false });
      await expect(ask('b')).rejects.toMatchObject({ reason: 'too_many_waiters' });
      await clock.advance(1000);
      expect(await later).toMatchObject({ outcome: 'approved', requestId });
    });
  });

  describe('a limiter with a substitute', () => {
    let store: StoreLimiterStub;
    let limiter: OutageLimiter;
    beforeEach(() => {
      store = new StoreLimiterStub();
      limiter = new OutageLimiter(
        store,
        new MemoryLimiter(
          policiesWith(() => LIMITS),
          clock,
        ),
        new OutageLog('local', clock, recordLog('silent').logger),
        clock,
        MAX_WAITERS,
      );
      opened.push(limiter);
    });

    test('holds as many waiters as allowed in store and substitute together', async () => {
      store.goDown('down');
      expect(await wait(limiter, 'down')).toMatchObject({
        outcome: 'approved',
        outagePolicy: 'local',
      });
      void wait(limiter, 'down');
      void wait(limiter, 'up');
      await expectTooMany(limiter, 'down');
      void wait(limiter, 'up');
      expect(store.asked.map(({ request }) => request.noPlace)).toEqual([undefined, true]);
      expect(await limiter.check({ key: 'down', canWait: false })).toMatchObject({
        outcome: 'denied',
      });
    });

    test('keeps waiters that move to the substitute, and gives their places to no other', async () => {
      const waiting = [wait(limiter, 'key'), wait(limiter, 'key')];
      store.goDown('key');
      await expectTooMany(limiter, 'key');
      expect(await waiting[0]).toMatchObject({ outcome: 'approved', outagePolicy: 'local' });
      void wait(limiter, 'key');
      await expectTooMany(limiter, 'key');
    });
  });
});
