import { Lease } from '../../../../src/redis/waiting/lease.js';

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
