import { jest } from '@jest/globals';

import { ownLimit } from '../../../../src/limiter/limits.js';
import type { LimitsInForce } from '../declared/limits-in-force.js';
import { WINDOW_MILLIS } from '../limits.js';
import { answersByOtherRules, undeclaredLimits } from './limits-given.js';
import { entry, evidenceOf, fault } from './sample-evidence.js';

const own = ownLimit(WINDOW_MILLIS, 4);
const limits = { key: own };
const DAY = { name: 'fixed_window', calendar: { unit: 'day', timeZone: 'UTC' } } as const;

test.each([
  ['a maximum that no rules gave', { maximum: 5 }, true, 1],
  ['a window of another length', { windowMillis: WINDOW_MILLIS + 1 }, true, 1],
  ['an algorithm that no rules gave', { algorithm: { name: 'token_bucket', burst: 4 } }, true, 1],
  ['a calendar that no rules gave', { algorithm: DAY }, true, 1],
  ['what the rules gave', {}, true, 0],
  ['a maximum that the key had before', { maximum: 5 }, false, 0],
] as const)('of the limits of a script, %s is told apart', (_, other, areOther, found) => {
  const given = [{ key: 'key', at: 5, limits: [{ ...own, ...other }] as const, areOther }];
  expect(undeclaredLimits(evidenceOf({ entries: [], given, limits }))).toHaveLength(found);
});

describe('an answer', () => {
  const wrong = { entries: [entry({ maximum: 5 })], limits };

  test('by a maximum that no rules gave is found', () => {
    expect(answersByOtherRules(evidenceOf(wrong))).toHaveLength(1);
  });

  test('by the maximum of the rules is right', () => {
    expect(answersByOtherRules(evidenceOf({ entries: [entry({ maximum: 4 })], limits }))).toEqual(
      [],
    );
  });

  test('is not judged where Redis has forgotten something', () => {
    const faults = [fault({ loses: 'unreplicated' })];
    expect(answersByOtherRules(evidenceOf({ ...wrong, faults }))).toEqual([]);
  });

  describe('by the maximum before a change', () => {
    const LATER = 5;
    let changedAt: number;
    /**
     * @param silence from when to when after the change Redis was silent, and lost what it did then
     * @param given that the key was given, at these ms after the change
     */
    const answersAround = (
      silence: readonly [from: number, to: number] | undefined,
      ...given: [millis: number, maximum: number][]
    ): string[] => {
      const [from = 0, to = 0] = silence?.map((millis) => changedAt + millis) ?? [];
      const silent = { silencesRedis: true, loses: 'unreplicated' } as const;
      const sentAt = changedAt + LATER;
      const evidence = evidenceOf({
        entries: [entry({ maximum: 4, sentAt, endedAt: sentAt + 1 })],
        limits,
        faults: silence ? [fault({ ...silent, beganAt: from, endedAt: to })] : [],
        given: given.map(([millis, maximum]) => ({
          key: 'key',
          at: changedAt + millis,
          limits: [{ ...own, maximum }],
          areOther: true,
        })),
      });
      jest.setSystemTime(changedAt - 2);
      const isEverywhere = (evidence.limits as LimitsInForce).change({
        key: { ...own, maximum: 5 },
      });
      jest.setSystemTime(changedAt);
      isEverywhere();
      return answersByOtherRules(evidence);
    };
    const answersAfter = (...given: [millis: number, maximum: number][]): string[] =>
      answersAround(undefined, ...given);
    beforeEach(() => {
      changedAt = 1_000_000;
      jest.useFakeTimers();
    });
    afterEach(() => {
      jest.useRealTimers();
    });

    test('is found', () => {
      expect(answersAfter()).toHaveLength(1);
      expect(answersAfter([-1000, 4])).toHaveLength(1);
    });

    test('is right if a replica with old rules gave it while others had new ones', () => {
      expect(answersAfter([-1, 4])).toEqual([]);
    });

    test('is found if the key has the new one again', () => {
      expect(answersAfter([-1, 4], [1, 5])).toHaveLength(1);
    });

    test('is right if a server that was silent during the change gave it afterwards', () => {
      expect(answersAround([-3, 3], [2, 4])).toEqual([]);
      expect(answersAround([1, 3], [2, 4])).toHaveLength(1);
    });

    test('is right if the new one may be forgotten', () => {
      expect(answersAround([0, 3], [-1, 4], [1, 5])).toEqual([]);
      expect(answersAround([0, 3], [-1, 4], [1, 5], [4, 5])).toHaveLength(1);
    });
  });
});
