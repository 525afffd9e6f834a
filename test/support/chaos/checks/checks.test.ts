import { jest } from '@jest/globals';

import { type Algorithm, ownLimit } from '../../../../src/limiter/limits.js';
import type { LimitsInForce } from '../declared/limits-in-force.js';
import { LONGEST_MILLIS, periodAt } from '../declared/short-calendars.js';
import type { FaultRecord } from '../faults/fault.js';
import { FURTHER, MAX_REQUESTS, WINDOW_MILLIS } from '../limits.js';
import { wrongAnswers } from './answers.js';
import { unfoundedApprovals } from './approvals.js';
import { lateAnswers, lateNews } from './bounds.js';
import { overtakenInRedis } from './fifo.js';
import { answersByOtherRules, undeclaredLimits } from './limits-given.js';
import { outOfPeriods } from './periods.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';
import { judgeSpansByRedis } from './spans.js';
import { judgeByRedis, judgeFurtherByRedis } from './windows.js';

type Sample = Parameters<typeof evidenceOf>[0];

const LOSS = fault({ name: 'failover', loses: 'unreplicated' });

describe('a wrong answer is', () => {
  test.each([
    ['a status that the contract does not know', [entry({ status: 500 })]],
    ['a refusal that does not say when to come back', [entry({ status: 429 })]],
    ['an approval without an id', [entry()]],
    ['a report that leaves too much', [entry({ kind: 'report', body: '{"remaining":2}' })]],
    ['an id that was given before', [entry({ requestId: 'id' }), entry({ requestId: 'id' })]],
  ])('%s', (_, entries) => {
    expect(wrongAnswers(evidenceOf({ entries }))).toHaveLength(1);
  });

  test('none that the contract allows', () => {
    const entries = [
      entry({ requestId: 'id' }),
      entry({ status: 429, retryAfter: '1' }),
      entry({ kind: 'release', requestId: 'id' }),
      entry({ kind: 'report', remaining: 1, body: '{"remaining":1}' }),
      entry({ outcome: 'cut', status: undefined }),
    ];
    expect(wrongAnswers(evidenceOf({ entries }))).toEqual([]);
  });
});

test('an approval that no script has given is unfounded', () => {
  const entries = [entry({ requestId: 'given' }), entry({ requestId: 'made up' })];
  const evidence = evidenceOf({ entries, approvals: [observed('given', 0)] });
  expect(unfoundedApprovals(evidence)).toEqual([expect.stringContaining('made up')]);
});

test('an answer to a check may not take longer than its replica stood still', () => {
  const entries = [entry({ sentAt: 0, endedAt: 4000 })];
  expect(lateAnswers(evidenceOf({ entries }))).toHaveLength(1);
  const faults = [fault({ stops: [0], endedAt: 2000 })];
  expect(lateAnswers(evidenceOf({ entries, faults }))).toEqual([]);
});

test('every request has an answer in the end', () => {
  const entries = [entry({ kind: 'wait', outcome: 'pending', endedAt: undefined })];
  expect(lateAnswers(evidenceOf({ entries }))).toHaveLength(1);
});

test('an answer follows its approval soon, unless its replica is out of touch', () => {
  const entries = [entry({ kind: 'wait', requestId: 'id', endedAt: 4000 })];
  const late = (...faults: FaultRecord[]): string[] =>
    lateNews(evidenceOf({ entries, approvals: [observed('id', 100)], faults }));
  expect(late(fault({ isolates: [1], endedAt: 2500 }))).toHaveLength(1);
  expect(late(fault({ isolates: [0], endedAt: 2500 }))).toEqual([]);
});

describe('a fixed window', () => {
  const ids = Array.from({ length: MAX_REQUESTS + 1 }, (_, i) => `id-${i}`);
  const entries = ids.map((requestId, i) => entry({ requestId, sentAt: 10 + i, endedAt: 20 + i }));
  const approvals = ids.map((id) => observed(id, 15));
  const judged = (sample: Partial<Sample> = {}) =>
    judgeByRedis(evidenceOf({ entries, approvals, ...sample }));

  test('with more than its maximum is found, with the fault that made Redis forget', () => {
    expect(judged()).toEqual({
      windows: 1,
      periods: 0,
      overfull: [{ key: 'key', start: 0, approved: MAX_REQUESTS + 1, maximum: MAX_REQUESTS }],
    });
    expect(judged({ faults: [LOSS] }).overfull[0]?.forgotBy).toBe('failover');
  });

  test('may be full, and has room after a release', () => {
    expect(judged({ entries: entries.slice(1) }).overfull).toEqual([]);
    const release = entry({ kind: 'release', requestId: ids[0] });
    expect(judged({ entries: [...entries, release] }).overfull).toEqual([]);
  });

  test('of a calendar is full until its day ends', () => {
    const calendar = { unit: 'day', timeZone: 'Europe/Berlin' } as const;
    const { start, end } = periodAt(calendar, 1_000_000);
    const limits = [
      ownLimit(end - start, MAX_REQUESTS, { name: 'fixed_window', calendar }),
    ] as const;
    const inDays = (first: number) =>
      judged({
        approvals: ids.map((id, i) => observed(id, 15, { limits, start: i === 0 ? first : start })),
      });
    expect(inDays(start)).toMatchObject({ windows: 1, periods: 1, overfull: [{ start }] });
    expect(inDays(end)).toEqual({ windows: 2, periods: 2, overfull: [] });
  });

  test('of a further limit counts hits or requests, and what is held from before it', () => {
    const own = ownLimit(WINDOW_MILLIS, 20);
    const [tokens, starts] = FURTHER.map((kind, i) => ({ ...own, ...kind, maximum: [4, 2][i]! }));
    const limits = { key: own, 'key/tokens': tokens!, 'key/starts': starts! };
    const overfull = (...others: Parameters<typeof entry>[0][]) => {
      const two = ['a', 'b'].map((requestId) => ({ requestId, hits: 2 }));
      const sample = {
        entries: [...two, ...others].map((each) => entry({ sentAt: 150, endedAt: 160, ...each })),
        approvals: ['a', 'b', 'c'].map((id) =>
          observed(id, 155, { limits: Object.values(limits), starts: { tokens: 100, starts: 0 } }),
        ),
        limits,
      };
      return judgeFurtherByRedis(evidenceOf(sample)).overfull.map(({ limit }) => limit);
    };
    expect(overfull()).toEqual([]);
    expect(overfull({ requestId: 'c' })).toEqual(['tokens', 'starts']);
    const release = { kind: 'release', requestId: 'b' } as const;
    expect(overfull({ requestId: 'c' }, release)).toEqual(['starts']);
    const held = { requestId: 'd', sentAt: 10, endedAt: 20 };
    expect(overfull({ ...held, holdMillis: 989 })).toEqual([]);
    expect(overfull({ ...held, holdMillis: 990 })).toEqual(['tokens']);
  });
});

describe('a span', () => {
  const overfull = (
    algorithm: Algorithm,
    given: readonly { at: number; hits?: number; holdMillis?: number }[],
    releasedAt?: number,
  ): number => {
    const limits = [ownLimit(400, 4, algorithm)] as const;
    const release = entry({ kind: 'release', requestId: 'id-0', sentAt: releasedAt ?? 0 });
    const evidence = evidenceOf({
      entries: [
        ...given.map(({ at, ...terms }, i) =>
          entry({ requestId: `id-${i}`, sentAt: at - 1, endedAt: at + 1, ...terms }),
        ),
        ...(releasedAt === undefined ? [] : [release]),
      ],
      approvals: given.map(({ at }, i) => observed(`id-${i}`, at, { isFromQueue: false, limits })),
      limits: { key: limits[0] },
    });
    return judgeSpansByRedis(evidence).overfull.length;
  };

  test('of a sliding window has at most its maximum, with what is held, and less what is released', () => {
    const sliding = { name: 'sliding_window', steps: 2 } as const;
    expect(overfull(sliding, [{ at: 0, hits: 3 }, { at: 300 }, { at: 400 }])).toBe(0);
    expect(overfull(sliding, [{ at: 0, hits: 3 }, { at: 300 }, { at: 399 }])).toBe(1);
    expect(overfull(sliding, [{ at: 0, hits: 4 }, { at: 200 }], 150)).toBe(0);
    expect(overfull(sliding, [{ at: 0, hits: 4, holdMillis: 1000 }, { at: 999 }])).toBe(1);
  });

  test('of a token bucket has at most its burst and what drains', () => {
    const bucket = { name: 'token_bucket', burst: 2 } as const;
    expect(overfull(bucket, [{ at: 0, hits: 2 }, { at: 100 }, { at: 250 }])).toBe(0);
    expect(overfull(bucket, [{ at: 0, hits: 2 }, { at: 99 }])).toBe(1);
    expect(overfull(bucket, [{ at: 0, hits: 2 }, { at: 50 }], 40)).toBe(0);
  });
});

test('an approval that does not count in the period that holds its time is found', () => {
  const calendar = { unit: 'month', timeZone: 'Asia/Kathmandu' } as const;
  const { start, end } = periodAt(calendar, Date.UTC(2026, 0, 1));
  const own = ownLimit(LONGEST_MILLIS.month, 4, { name: 'fixed_window', calendar });
  const judged = (at: number, from: number): string[] => {
    const entries = [entry({ requestId: 'a', sentAt: at - 1, endedAt: at + 1 })];
    const approvals = [observed('a', at, { limits: [own], start: from })];
    return outOfPeriods(evidenceOf({ entries, approvals, limits: { key: own } }));
  };
  expect(judged(end - 1, start)).toEqual([]);
  expect(judged(end, end)).toEqual([]);
  expect(judged(end + 100, start)).toHaveLength(1);
  expect(judged(start - 1, start)).toHaveLength(1);
  expect(judged(start + 2, start + 1)).toHaveLength(1);
});

describe('a waiter', () => {
  const evidence = {
    entries: [
      entry({ kind: 'wait', requestId: 'first', sentAt: 0, endedAt: 5000 }),
      entry({ kind: 'wait', requestId: 'second', sentAt: 2000, endedAt: 3000 }),
    ],
    tickets: [
      ['first', 10],
      ['second', 20],
    ],
    approvals: [observed('second', 2900), observed('first', 4900)],
  } as const;
  const overtaken = (other: Partial<Sample> = {}): string[] =>
    overtakenInRedis(evidenceOf({ ...evidence, ...other }));

  test('that is served after a later one is found, but not one of another list', () => {
    expect(overtaken()).toEqual([expect.stringContaining('first')]);
    expect(overtaken({ approvals: [observed('first', 2800), observed('second', 2900)] })).toEqual(
      [],
    );
    expect(overtaken({ lists: [['first', 'lane:batch']] })).toEqual([]);
  });

  test.each<[string, Partial<Sample>, Partial<Sample>]>([
    [
      'while its replica has no Redis',
      { faults: [fault({ isolates: [0] })] },
      { faults: [fault({ isolates: [1] })] },
    ],
    [
      'if its slot moves for longer than a lease',
      { faults: [fault({ moves: 'key', endedAt: 2000 })] },
      { faults: [fault({ moves: 'key', endedAt: 1999 })] },
    ],
    ['if leases ran out', { stoodStillMillis: 1400 }, { stoodStillMillis: 1300 }],
    ['if its replica got no processor', { withheldMillis: 670 }, { withheldMillis: 660 }],
  ])('may be passed over %s, and only then', (_, isExcuse, isNone) => {
    expect(overtaken(isExcuse)).toEqual([]);
    expect(overtaken(isNone)).toHaveLength(1);
  });
});

describe('with limits that change', () => {
  const own = ownLimit(WINDOW_MILLIS, 4);
  const limits = { key: own };
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test('limits of a script that no rules gave are found', () => {
    const undeclared = (other: Partial<typeof own>): string[] => {
      const changed = [{ ...own, ...other }] as const;
      const given = [{ key: 'key', at: 5, limits: changed, areOther: true }];
      return undeclaredLimits(evidenceOf({ entries: [], given, limits }));
    };
    expect(undeclared({})).toEqual([]);
    expect(undeclared({ maximum: 5 })).toHaveLength(1);
    expect(undeclared({ algorithm: { name: 'token_bucket', burst: 4 } })).toHaveLength(1);
  });

  test('an answer by the maximum before a change is found, unless the key has kept it', () => {
    const changedAt = 1_000_000;
    const answersAfter = (...given: [millis: number, maximum: number][]): string[] => {
      const sentAt = changedAt + 5;
      const evidence = evidenceOf({
        entries: [entry({ maximum: 4, sentAt, endedAt: sentAt + 1 })],
        limits,
        given: given.map(([millis, maximum]) => ({
          ...{ key: 'key', at: changedAt + millis, areOther: true },
          limits: [{ ...own, maximum }],
        })),
      });
      jest.setSystemTime(changedAt - 2);
      const rules = evidence.limits as LimitsInForce;
      const isEverywhere = rules.change({ key: { ...own, maximum: 5 } });
      jest.setSystemTime(changedAt);
      isEverywhere();
      return answersByOtherRules(evidence);
    };
    expect(answersAfter()).toHaveLength(1);
    expect(answersAfter([-1, 4])).toEqual([]);
    expect(answersAfter([-1, 4], [1, 5])).toHaveLength(1);
  });
});
