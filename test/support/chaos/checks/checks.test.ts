import { jest } from '@jest/globals';

import { ownLimit } from '../../../../src/limiter/limits.js';
import type { LimitsInForce } from '../declared/limits-in-force.js';
import type { FaultRecord } from '../faults/fault.js';
import { TENANT, WINDOW_MILLIS } from '../limits.js';
import { wrongAnswers } from './answers.js';
import { unfoundedApprovals } from './approvals.js';
import { lateAnswers, lateNews } from './bounds.js';
import { overtakenInRedis } from './fifo.js';
import { overspentByGroups } from './groups.js';
import { answersByOtherRules, undeclaredLimits } from './limits-given.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';

type Sample = Parameters<typeof evidenceOf>[0];

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

describe('a group that gets more than its own limit', () => {
  const [own, first] = [ownLimit(WINDOW_MILLIS, 9), 10_000];
  const tenant = (maximum: number) => ({
    ...{ ...TENANT, maximum, algorithm: { name: 'sliding_window', steps: 2 } as const },
    perGroup: { maxima: new Map([['gold', 4]]) },
  });
  const given = (at: number, ...further: ReturnType<typeof tenant>[]) => ({
    ...{ key: 'key', at, areOther: true },
    limits: [own, ...further] as const,
  });
  /** Two approvals of two hits each in its span. */
  const overspent = (group: string, other: Partial<Sample> = {}, millis = 890): string[] => {
    const times = [first, first + millis];
    const entries = times.map((sentAt, i) =>
      entry({ group, hits: 2, requestId: `${i}`, sentAt, endedAt: sentAt + 1 }),
    );
    const approvals = times.map((at, i) => observed(`${i}`, at));
    const limits = { key: own, 'key/tenant': tenant(3) };
    const sample = { entries, approvals, limits, given: [given(0, tenant(3))], ...other };
    return overspentByGroups(evidenceOf(sample));
  };

  test('is found, by the maximum of the group', () => {
    expect(overspent('a')).toEqual([expect.stringContaining('4 hits of a, and not 3')]);
    expect(overspent('gold')).toEqual([]);
    expect(overspent('a', {}, 900)).toEqual([]);
  });

  test('is found after a standstill of the machine only among approvals that are closer by as much', () => {
    expect(overspent('a', { stoodStillMillis: 100 }, 790)).toHaveLength(1);
    expect(overspent('a', { stoodStillMillis: 100 }, 800)).toEqual([]);
  });

  test('is none while another may be in force, or after a loss', () => {
    expect(overspent('a', { limits: { key: own } })).toEqual([]);
    expect(overspent('a', { given: [given(0), given(first + 1, tenant(3))] })).toEqual([]);
    const faults = [fault({ loses: 'memory', beganAt: first + 1, endedAt: first + 2 })];
    expect(overspent('a', { faults })).toEqual([]);
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
