import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { type LeasedQueue, LeaseRenewals } from '../../../../src/redis/waiting/lease-renewals.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { quiet, ScriptedStore } from '../../../support/waiting/scripted-store.js';

const LEASE = 3000;
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
  readonly wakeNumber = 1;
  readonly lookFor = 'queue';
  renewalDueAt = clock.now() + DUE_AFTER;
  doubts = 0;

  constructor(key: string) {
    this.names = naming.namesOf(key);
  }

  leaseRenewed(sentAt: number): void {
    this.renewalDueAt = sentAt + DUE_AFTER;
  }

  leaseDoubted(): void {
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

test('a lease counts from when its call was sent', async () => {
  watch('a');
  await advance(DUE_AFTER);
  await advance(400);
  await store.lastRenewal.answer();
  await advance(DUE_AFTER - 401);
  expect(called()).toHaveLength(1);
  await advance(1);
  expect(called()).toHaveLength(2);
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

test('a queue that a settle has taken over is not renewed', async () => {
  const [a] = [watch('a'), watch('b')];
  a.renewalDueAt = Infinity;
  await advance(DUE_AFTER);
  expect(called()).toEqual([['{b}']]);
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
