import { jest } from '@jest/globals';

import { ownLimit } from '../../../../src/limiter/limits.js';
import type { LimitsInForce } from '../declared/limits-in-force.js';
import { LONGEST_MILLIS, periodAt } from '../declared/short-calendars.js';
import type { FaultRecord } from '../faults/fault.js';
import { FURTHER, KEYS } from '../limits.js';
import { outOfPeriods } from './periods.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';

const calendar = { unit: 'month', timeZone: 'Asia/Kathmandu' } as const;
const { start, end, nextEnd } = periodAt(calendar, Date.UTC(2026, 0, 1));
const algorithm = { name: 'fixed_window', calendar } as const;
const own = ownLimit(LONGEST_MILLIS.month, 4, algorithm);

/** What is wrong with an approval at a time, in a window from another. */
function judged(
  at: number,
  from: number,
  { key = 'key', faults = [] }: { key?: string; faults?: readonly FaultRecord[] } = {},
): string[] {
  const entries = [entry({ key, requestId: 'a', sentAt: at - 1, endedAt: at + 1 })];
  const approvals = [observed('a', at, { limits: [own], start: from })];
  return outOfPeriods(evidenceOf({ entries, approvals, limits: { [key]: own }, faults }));
}

test('an approval counts in the period that holds its time', () => {
  expect(judged(start, start)).toEqual([]);
  expect(judged(end - 1, start)).toEqual([]);
  expect(judged(end, end)).toEqual([]);
});

test('an approval in the window of another period is found', () => {
  const found = [expect.stringContaining('not the month of Asia/Kathmandu')];
  expect(judged(end + 100, start)).toEqual(found);
  expect(judged(start - 1, start)).toEqual(found);
  expect(judged(nextEnd + 100, start)).toEqual(found);
});

test('a window that begins inside of a period is found', () => {
  expect(judged(start + 2, start + 1)).toHaveLength(1);
});

describe('after the rules have lost the calendar', () => {
  const changedAt = start - 2000;
  beforeEach(() => {
    jest.useFakeTimers({ now: changedAt });
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  /** What is wrong with an approval inside of a period, in a window of a key that got its limits at another time. */
  function judgedOf(givenAt: number): string[] {
    const evidence = evidenceOf({
      entries: [entry({ requestId: 'a', sentAt: start + 2, endedAt: start + 4 })],
      approvals: [observed('a', start + 3, { limits: [own], start: start + 1 })],
      limits: { key: own },
      given: [{ key: 'key', at: givenAt, limits: [own], areOther: false }],
    });
    const isEverywhere = (evidence.limits as LimitsInForce).change({ key: ownLimit(500, 4) });
    jest.setSystemTime(changedAt + 10);
    isEverywhere();
    return outOfPeriods(evidence);
  }

  test('a window of a key that keeps it may begin inside of a period', () => {
    expect(judgedOf(changedAt + 5)).toEqual([]);
  });

  test('a window of a key that got it later is found', () => {
    expect(judgedOf(changedAt + 11)).toHaveLength(1);
  });
});

test('a report may keep a window of a limited key open', () => {
  const key = KEYS.limited[0];
  expect(judged(end + 800, start, { key })).toEqual([]);
  expect(judged(end + 900, start, { key })).toHaveLength(1);
});

test('a server that stood still may have begun its script before', () => {
  const faults = [fault({ silencesRedis: true, beganAt: start, endedAt: end + 200 })];
  expect(judged(end + 100, start, { faults })).toEqual([]);
});

test('the windows of further limits are judged', () => {
  const limits = [
    ownLimit(500, 8),
    { ...own, ...FURTHER[0]!, windowMillis: own.windowMillis },
  ] as const;
  const ofTokens = (from: number): string[] =>
    outOfPeriods(
      evidenceOf({
        entries: [entry({ requestId: 'a', sentAt: end + 100, endedAt: end + 102 })],
        approvals: [observed('a', end + 101, { limits, starts: { tokens: from } })],
      }),
    );
  expect(ofTokens(end)).toEqual([]);
  expect(ofTokens(start)).toHaveLength(1);
});
