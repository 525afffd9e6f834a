import { type Algorithm, ownLimit } from '../../../../src/limiter/limits.js';
import type { Entry } from '../ledger.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';
import { judgeSpansByRedis } from './spans.js';

const SLIDING: Algorithm = { name: 'sliding_window', steps: 2 };
const BUCKET: Algorithm = { name: 'token_bucket', burst: 2 };

interface Given extends Partial<Entry> {
  readonly at: number;
  readonly isFromQueue?: boolean;
  readonly algorithm?: Algorithm;
  readonly keepsReleased?: boolean;
  readonly since?: number;
}

type Sample = Partial<Parameters<typeof evidenceOf>[0]>;

/** Judges approvals of a limit of four in 400 ms, and changes of them. */
function judge(given: readonly Given[], changes: readonly Entry[], other: Sample = {}) {
  const own = ownLimit(400, 4);
  const approvals = given.map((each, i) => {
    const { at, isFromQueue = false, algorithm = SLIDING, keepsReleased = false, since } = each;
    const limits = [{ ...own, algorithm, keepsReleased }];
    return observed(`id-${i}`, at, { isFromQueue, limits, ...(since && { since }) });
  });
  const asked = given.map(({ at, hits, holdMillis }, i) =>
    entry({ requestId: `id-${i}`, hits, holdMillis, sentAt: at - 1, endedAt: at + 1 }),
  );
  const entries = [...asked, ...changes];
  return judgeSpansByRedis(evidenceOf({ entries, approvals, limits: { key: own }, ...other }));
}

function overfullOf(given: readonly Given[], ...changes: readonly Entry[]): number {
  return judge(given, changes).overfull.length;
}

/** The approval at an index is released. */
function release(index: number, sentAt: number): Entry {
  return entry({ kind: 'release', requestId: `id-${index}`, sentAt });
}

describe('a sliding window', () => {
  test('has at most its maximum in any span of its length', () => {
    expect(overfullOf([{ at: 0, hits: 3 }, { at: 300 }, { at: 400 }])).toBe(0);
    const { overfull } = judge([{ at: 0, hits: 3 }, { at: 300 }, { at: 399 }], []);
    expect(overfull).toEqual([expect.objectContaining({ from: 0, to: 399, approved: 5, most: 4 })]);
  });

  test('has room again after a release or a correction, and not before', () => {
    const given = [{ at: 0, hits: 4 }, { at: 200 }];
    const correction = entry({ kind: 'amend', requestId: 'id-0', hits: 1, sentAt: 150 });
    expect(overfullOf(given)).toBe(1);
    expect(overfullOf(given, release(0, 150))).toBe(0);
    expect(overfullOf(given, release(0, 250))).toBe(1);
    expect(overfullOf(given, correction)).toBe(0);
  });

  test('has no room after a release that it keeps', () => {
    const kept = { keepsReleased: true };
    expect(
      overfullOf(
        [
          { at: 0, hits: 4, ...kept },
          { at: 200, ...kept },
        ],
        release(0, 150),
      ),
    ).toBe(1);
  });

  test('counts a hold until it may lapse', () => {
    const held = { at: 0, hits: 4, holdMillis: 1000 };
    expect(overfullOf([held, { at: 999 }])).toBe(1);
    expect(overfullOf([held, { at: 1000 }])).toBe(0);
  });

  test('does not count what was approved by another algorithm, or before the limit was there', () => {
    expect(overfullOf([{ at: 0, hits: 4, algorithm: BUCKET }, { at: 1 }])).toBe(1);
    expect(
      overfullOf([
        { at: 0, hits: 2, algorithm: BUCKET },
        { at: 1, hits: 4 },
      ]),
    ).toBe(0);
    expect(
      overfullOf([
        { at: 0, hits: 4 },
        { at: 10, since: 5 },
      ]),
    ).toBe(0);
  });
});

describe('a token bucket', () => {
  const bucket = (at: number, other: Partial<Given> = {}): Given => ({
    at,
    algorithm: BUCKET,
    ...other,
  });

  test('has at most its burst and what drains, in any span', () => {
    expect(overfullOf([bucket(0, { hits: 2 }), bucket(100), bucket(250), bucket(300)])).toBe(0);
    expect(overfullOf([bucket(0, { hits: 2 }), bucket(99)])).toBe(1);
    expect(overfullOf([bucket(0), bucket(50), bucket(100), bucket(149)])).toBe(1);
  });

  test('has a little more where waiters are served', () => {
    const waiter = { isFromQueue: true };
    expect(overfullOf([bucket(0, { hits: 2, ...waiter }), bucket(71, waiter)])).toBe(0);
    expect(overfullOf([bucket(0, { hits: 2, ...waiter }), bucket(69, waiter)])).toBe(1);
  });

  test('gets back by a release what has not drained', () => {
    expect(overfullOf([bucket(0, { hits: 2 }), bucket(50)], release(0, 40))).toBe(0);
    expect(overfullOf([bucket(0, { hits: 2 }), bucket(50, { hits: 2 })], release(0, 40))).toBe(0);
    expect(overfullOf([bucket(0, { hits: 2 }), bucket(99, { hits: 2 })], release(0, 99))).toBe(0);
    const three = [bucket(0), bucket(0), bucket(90)];
    expect(overfullOf(three)).toBe(1);
    expect(overfullOf(three, release(0, 90))).toBe(0);
    expect(overfullOf([...three, bucket(90)], release(0, 90), release(1, 90))).toBe(1);
  });

  test('gets nothing back when a hold lapses', () => {
    expect(overfullOf([bucket(0, { hits: 2, holdMillis: 50 }), bucket(60)])).toBe(1);
  });
});

test('spans name the fault that made Redis forget', () => {
  const faults = [fault({ name: 'failover', loses: 'unreplicated' })];
  const given = [{ at: 0, hits: 4 }, { at: 1 }];
  expect(judge(given, [], { faults }).overfull[0]?.forgotBy).toBe('failover');
  expect(judge(given, []).overfull[0]?.forgotBy).toBeUndefined();
});
