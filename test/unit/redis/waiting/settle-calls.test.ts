import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import { Waiter } from '../../../../src/limiter/waiter.js';
import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { Lease, type LeasedQueue, LeaseRenewals } from '../../../../src/redis/waiting/leases.js';
import { LocalWaiters } from '../../../../src/redis/waiting/local-waiters.js';
import type { KnownWindow, SettleReply } from '../../../../src/redis/scripts/settle-codec.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';
import { ScriptedStore, quiet } from '../../../support/waiting/scripted-store.js';
import {
  SettleCalls,
  type SettleLine,
  settleLine,
  type Unsettled,
} from '../../../../src/redis/waiting/settle-calls.js';
import { until } from '../../../support/until.js';

const LEASE = 3000;

describe('settle calls', () => {
  const LOOK_AGAIN = 40_000;

  let store: ScriptedStore;
  let clock: ManualClock;
  let log: RecordedLog;
  let waiters: LocalWaiters;
  let withdrawn: (readonly string[])[];
  let lease: Lease;
  let calls: SettleCalls;
  beforeEach(() => {
    store = new ScriptedStore();
    clock = new ManualClock(0);
    log = recordLog('debug');
    waiters = new LocalWaiters();
    withdrawn = [];
    lease = new Lease(LEASE, LOOK_AGAIN);
    calls = new SettleCalls(waiters, {
      names: new KeyNaming('').namesOf('k'),
      store,
      clock,
      logger: log.logger,
      lease,
      withdraw: (requestIds) => withdrawn.push([...requestIds]),
    });
    lease.settled(0);
    for (const ticket of [3, 1, 2]) {
      waiters.ask(new Waiter(`w${ticket}`), 0);
      waiters.giveTicket(`w${ticket}`, ticket);
    }
  });

  /** A call that is answered at once. */
  const KNOWN: KnownWindow = { millisLeft: 700, limits: '1000:1:5' };

  async function settle(): Promise<SettleReply | undefined> {
    const reply = calls.settle(KNOWN);
    await store.last.answer();
    return reply;
  }

  test('calls ask about doubted waiters in the order of their tickets, 500 at a time', async () => {
    for (let ticket = 1001; ticket <= 1600; ticket += 1) {
      waiters.ask(new Waiter(`w${ticket}`), 0);
      waiters.giveTicket(`w${ticket}`, ticket);
    }
    waiters.doubtAll();
    await settle();
    await settle();
    await settle();
    expect(store.calls.map(({ ids }) => ids.length)).toEqual([500, 103, 0]);
    const tickets = store.calls.flatMap(({ askedAbout }) => askedAbout.map(({ ticket }) => ticket));
    expect(tickets).toEqual([...tickets].sort((a, b) => a - b));
    expect(store.calls[0]!.ids.slice(0, 3)).toEqual(['w1', 'w2', 'w3']);
  });

  describe('a call that fails', () => {
    test('leaves all waiters doubted, also the waiters that it asked about', async () => {
      waiters.doubt('w1');
      const failed = calls.settle(KNOWN);
      await store.last.fail();
      expect(await failed).toBeUndefined();
      await settle();
      expect(store.last.ids).toEqual(['w1', 'w2', 'w3']);
    });

    test.each([
      ['warn', 'a fault', new Error('a fault')],
      ['debug', 'a store that is down', new StoreUnavailableError()],
    ])('is logged only once in a row, at level %s: %s', async (level, _what, error) => {
      for (let i = 0; i < 3; i += 1) {
        void calls.settle(KNOWN);
        await store.last.fail(error);
      }
      expect(log.lines).toMatchObject([
        { level, state: '{k}', msg: 'settle failed; its waiters keep waiting' },
      ]);
      await settle();
      void calls.settle(KNOWN);
      await store.last.fail(error);
      expect(log.lines).toHaveLength(2);
    });
  });

  describe('the lease', () => {
    test('is renewed by a call, from when it was sent', async () => {
      await clock.advance(500);
      const reply = calls.settle(KNOWN);
      await clock.advance(400);
      await store.last.answer();
      await reply;
      expect(lease.renewalDueAt).toBe(500 + LEASE / 3);
    });

    test('is not renewed by a call that fails', async () => {
      await clock.advance(500);
      void calls.settle(KNOWN);
      await store.last.fail();
      expect(lease.renewalDueAt).toBe(LEASE / 3);
    });

    test('that lapsed before a call makes the call ask about all waiters once', async () => {
      await clock.advance(LEASE);
      await settle();
      expect(store.last.ids).toEqual(['w1', 'w2', 'w3']);
      expect(waiters.hasDoubted).toBe(false);
    });

    test('that may have lapsed while a call was on its way leaves all waiters doubted', async () => {
      await clock.advance(LEASE - 1);
      const reply = calls.settle(KNOWN);
      await clock.advance(1);
      await store.last.answer();
      await reply;
      expect(store.last.ids).toEqual([]);
      expect(waiters.hasDoubted).toBe(true);
    });
  });

  describe('withdrawals', () => {
    test.each(['answer', 'fail'] as const)(
      'come after a call under way, which may put a waiter back: %s',
      async (end) => {
        void calls.settle(KNOWN);
        calls.withdraw(['a']);
        calls.withdraw(['b']);
        expect(withdrawn).toEqual([]);
        await store.last[end]();
        expect(withdrawn).toEqual([['a', 'b']]);
        calls.withdraw(['c']);
        expect(withdrawn).toEqual([['a', 'b'], ['c']]);
        await settle();
        expect(withdrawn).toHaveLength(2);
      },
    );
  });

  test('withdrawals after a failed call go once more when it has ended, since it may put a waiter back later', async () => {
    let end!: (value?: unknown) => void;
    const ended = new Promise((resolve) => (end = resolve));
    void calls.settle(KNOWN);
    calls.withdraw(['a']);
    await store.last.fail(new StoreUnavailableError({ mayHaveRun: true, ended }));
    calls.withdraw(['b']);
    expect(withdrawn).toEqual([['a'], ['b']]);
    end();
    await new Promise((resolve) => setImmediate(resolve));
    expect(withdrawn.slice(2)).toEqual([['a'], ['b']]);
    calls.withdraw(['c']);
    await new Promise((resolve) => setImmediate(resolve));
    expect(withdrawn.slice(4)).toEqual([['c']]);
  });
});

describe('the line of settle calls', () => {
  /** A queue whose settle calls the test ends. */
  class TestQueue implements Unsettled {
    calls = 0;
    refusals = 0;
    #end: (() => void) | undefined;

    readonly names: { readonly state: string };

    constructor(state: string) {
      this.names = { state };
    }

    settle(): Promise<void> {
      this.calls += 1;
      underWay.add(this);
      return new Promise((resolve) => (this.#end = resolve));
    }

    notAsked(): void {
      this.refusals += 1;
    }

    async end(): Promise<void> {
      underWay.delete(this);
      this.#end?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  let underWay: Set<TestQueue>;
  let isAvailable: boolean;
  let undone: number[];
  let clock: ManualClock;
  let line: SettleLine;
  beforeEach(() => {
    underWay = new Set();
    isAvailable = true;
    undone = [];
    clock = new ManualClock(0);
    line = settleLine({
      clock,
      isAvailable: () => isAvailable,
      observer: {
        catchingUp: (what, count) => {
          expect(what).toBe('settle');
          undone.push(count);
        },
      },
    });
  });

  function join(count: number): TestQueue[] {
    const queues = Array.from({ length: count }, (_, i) => new TestQueue(`{k${i}}`));
    for (const queue of queues) line.add([queue]);
    return queues;
  }

  const called = (queues: readonly TestQueue[]): number =>
    queues.reduce((sum, { calls }) => sum + calls, 0);

  test('sixteen queues are settled at a time, first come, first served', async () => {
    const queues = join(20);
    expect(queues.map(({ calls }) => calls)).toEqual(queues.map((_, i) => (i < 16 ? 1 : 0)));
    await queues[3]!.end();
    expect(queues.map(({ calls }) => calls)).toEqual(queues.map((_, i) => (i < 17 ? 1 : 0)));
  });

  test('a queue that is over is not settled', async () => {
    const queues = join(18);
    line.remove(queues[16]!);
    await queues[0]!.end();
    expect([queues[16]!.calls, queues[17]!.calls]).toEqual([0, 1]);
  });

  test('no queue is settled while the store is known to be down, and all are when it is back', async () => {
    isAvailable = false;
    const queues = join(1000);
    await clock.advance(10_000);
    expect([called(queues), undone.at(-1)]).toEqual([0, 1000]);
    expect(queues.every(({ refusals }) => refusals > 10)).toBe(true);
    isAvailable = true;
    line.retry();
    while (underWay.size > 0) await [...underWay][0]!.end();
    await until(() => undone.at(-1) === 0);
    expect(called(queues)).toBe(1000);
  });
});

describe('renewals of leases', () => {
  const DUE_AFTER = LEASE / 3;
  /** Leases that are due within this time of each other are renewed together. */
  const TOGETHER = LEASE / 12;

  const naming = new KeyNaming('');

  let clock: ManualClock;
  let store: ScriptedStore;
  let renewals: LeaseRenewals;
  let slots: Record<string, number>;
  beforeEach(() => {
    clock = new ManualClock(0);
    store = new ScriptedStore();
    slots = {};
    renewals = new LeaseRenewals({
      store,
      clock,
      leaseMillis: LEASE,
      slotOf: (name) => slots[name] ?? 0,
    });
  });

  class FakeQueue implements LeasedQueue {
    readonly names;
    readonly places = 1;
    readonly keepsAny = false;
    readonly wakeNumber = 1;
    renewalDueAt = clock.now() + DUE_AFTER;
    doubts = 0;

    constructor(key: string) {
      this.names = naming.namesOf(key);
    }

    leaseRenewed(sentAt: number): void {
      this.renewalDueAt = sentAt + DUE_AFTER;
    }

    settleSoon(): void {
      this.doubts += 1;
      this.renewalDueAt = Infinity;
    }
  }

  function watch(key: string): FakeQueue {
    const queue = new FakeQueue(key);
    renewals.watch(queue);
    return queue;
  }

  async function advance(millis: number): Promise<void> {
    await clock.advance(millis, { afterTimers: quiet });
  }

  /** The states in each call so far. */
  function called(): string[][] {
    return store.renewals.map(({ leased }) => leased.map(([state]) => state));
  }

  test('leases that are due soon share a call, and stay together', async () => {
    watch('a');
    await advance(TOGETHER);
    watch('b');
    await advance(1);
    watch('c');
    await advance(DUE_AFTER - TOGETHER - 1);
    expect(called()).toEqual([['{a}', '{b}']]);
    await store.lastRenewal.answer();
    await advance(TOGETHER + 1);
    expect(called()).toEqual([['{a}', '{b}'], ['{c}']]);
    await store.lastRenewal.answer();
    await advance(DUE_AFTER - TOGETHER - 1);
    expect(called()).toEqual([['{a}', '{b}'], ['{c}'], ['{a}', '{b}']]);
  });

  test('a lease that is due sooner than others does not wait for them', async () => {
    watch('a');
    const early = new FakeQueue('early');
    early.renewalDueAt = 100;
    renewals.watch(early);
    await advance(100);
    expect(called()).toEqual([['{early}']]);
  });

  test('each slot has its own calls, with at most a hundred keys', async () => {
    for (let i = 0; i < 150; i += 1) watch(`a${i}`);
    for (let i = 0; i < 2; i += 1) slots[watch(`b${i}`).names.state] = 1;
    await advance(DUE_AFTER);
    expect(called().map((states) => states.length)).toEqual([100, 50, 2]);
    expect(called()[2]).toEqual(['{b0}', '{b1}']);
  });

  test('at most four hundred leases are renewed at a time, and later ones count from their own call', async () => {
    const queues = Array.from({ length: 401 }, (_, i) => watch(`a${i}`));
    await advance(DUE_AFTER);
    expect(called()).toHaveLength(4);
    await advance(50);
    for (const call of store.renewals.slice(0, 4)) await call.answer();
    expect(called().slice(4)).toEqual([['{a400}']]);
    await store.lastRenewal.answer();
    expect(queues[400]!.renewalDueAt).toBe(queues[0]!.renewalDueAt + 50);
  });

  test('only leases that were not renewed are doubted', async () => {
    const [a, b] = [watch('a'), watch('b')];
    await advance(DUE_AFTER);
    await store.lastRenewal.answer(['{b}']);
    expect([a.doubts, b.doubts]).toEqual([0, 1]);
  });

  test('all leases of a failed call are doubted, and none of another call', async () => {
    const [a, b] = [watch('a'), watch('b')];
    slots['{b}'] = 1;
    await advance(DUE_AFTER);
    await store.renewals[0]!.fail();
    await store.renewals[1]!.answer();
    expect([a.doubts, b.doubts]).toEqual([1, 0]);
  });

  test('a queue that joins while calls are under way is renewed when it is due', async () => {
    watch('a');
    await advance(DUE_AFTER);
    watch('b');
    await advance(DUE_AFTER);
    expect(called()).toHaveLength(1);
    await store.lastRenewal.answer();
    await advance(0);
    expect(called()[1]).toContain('{b}');
  });

  test('no timer is left when all queues are over, with or without a call under way', async () => {
    const queue = watch('a');
    await advance(DUE_AFTER);
    renewals.unwatch(queue);
    await store.lastRenewal.answer();
    const other = watch('b');
    renewals.unwatch(other);
    await advance(10 * LEASE);
    expect(called()).toHaveLength(1);
  });
});

describe('a lease', () => {
  let lease: Lease;
  beforeEach(() => {
    lease = new Lease(900, 10_000);
    lease.settled(100);
  });

  test('a lease may have lapsed after its time, counted from when the call was sent', () => {
    expect([999, 1000].map((now) => lease.mayHaveLapsed(now))).toEqual([false, true]);
    expect(lease.renewed(800, 900)).toBe(false);
    expect([1000, 1699, 1700].map((now) => lease.mayHaveLapsed(now))).toEqual([false, false, true]);
    expect(lease.renewalDueAt).toBe(1100);
  });

  test('a lease is not shortened by a call that was sent before another', () => {
    expect(lease.renewed(50, 150)).toBe(false);
    expect(lease.renewalDueAt).toBe(400);
  });
});
