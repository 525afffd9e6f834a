import type { Entry } from '../ledger.js';
import { overtakenInRedis } from './fifo.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';

function waiter(requestId: string, sentAt: number, endedAt: number): Entry {
  return entry({ kind: 'wait', requestId, sentAt, endedAt });
}

describe('a waiter', () => {
  const first = waiter('first', 0, 5000);
  const second = waiter('second', 2000, 3000);
  const overtaking = {
    entries: [first, second],
    tickets: [
      ['first', 10],
      ['second', 20],
    ] as const,
    approvals: [observed('second', 2900), observed('first', 4900)],
  };

  test('that is served after a later one is found', () => {
    const evidence = evidenceOf(overtaking);
    expect(overtakenInRedis(evidence)).toEqual([expect.stringContaining('first')]);
  });

  test('that is served in its turn is not', () => {
    const approvals = [observed('first', 2800), observed('second', 2900)];
    const evidence = evidenceOf({ ...overtaking, approvals });
    expect(overtakenInRedis(evidence)).toEqual([]);
  });

  test('may be passed over while its replica has no Redis, and while another has none, not', () => {
    const isolated = evidenceOf({ ...overtaking, faults: [fault({ isolates: [0] })] });
    const elsewhere = evidenceOf({ ...overtaking, faults: [fault({ isolates: [1] })] });
    expect(overtakenInRedis(isolated)).toEqual([]);
    expect(overtakenInRedis(elsewhere)).toHaveLength(1);
  });

  test('may be passed over if its slot moves for longer than a lease, and not by a shorter move', () => {
    const moved = (moves: string, endedAt: number): string[] =>
      overtakenInRedis(evidenceOf({ ...overtaking, faults: [fault({ moves, endedAt })] }));
    expect(moved('key', 2000)).toEqual([]);
    expect(moved('key', 1999)).toHaveLength(1);
    expect(moved('other', 2000)).toHaveLength(1);
  });

  test('may be passed over if the machine stood still until leases ran out, and not before', () => {
    const stoodStill = (stoodStillMillis: number): string[] =>
      overtakenInRedis(evidenceOf({ ...overtaking, stoodStillMillis }));
    expect(stoodStill(1300)).toHaveLength(1);
    expect(stoodStill(1400)).toEqual([]);
  });

  test('may be passed over if its replica got no processor for half of that time, and not for less', () => {
    const kept = (withheldMillis: number): string[] =>
      overtakenInRedis(evidenceOf({ ...overtaking, withheldMillis }));
    expect(kept(660)).toHaveLength(1);
    expect(kept(670)).toEqual([]);
  });

  test('in another lane has a list of its own', () => {
    const lists = [
      ['first', 'lane:batch'],
      ['second', 'lane:interactive'],
    ] as const;
    expect(overtakenInRedis(evidenceOf({ ...overtaking, lists }))).toEqual([]);
  });

  test('of another key has a queue of its own', () => {
    const entries = [first, { ...second, key: 'other' }];
    expect(overtakenInRedis(evidenceOf({ ...overtaking, entries }))).toEqual([]);
  });
});
