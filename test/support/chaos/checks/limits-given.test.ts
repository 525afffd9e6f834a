import { jest } from '@jest/globals';

import type { MaximaInForce } from '../declared/maxima-in-force.js';
import { WINDOW_MILLIS } from '../limits.js';
import { answersByOtherRules, undeclaredLimits } from './limits-given.js';
import { entry, evidenceOf, fault } from './sample-evidence.js';

const maxima = { key: 4 };

test.each([
  ['a maximum that no rules gave', { maximum: 5 }, 1],
  ['a window of another length', { windowMillis: WINDOW_MILLIS + 1 }, 1],
  ['what the rules gave', {}, 0],
  ['a maximum that the key had before', { maximum: 5, areOther: false }, 0],
])('of the limits of a script, %s is told apart', (_, other, found) => {
  const declared = {
    key: 'key',
    at: 5,
    maximum: 4,
    windowMillis: WINDOW_MILLIS,
    further: [],
    areOther: true,
  };
  const evidence = evidenceOf({ entries: [], limits: [{ ...declared, ...other }], maxima });
  expect(undeclaredLimits(evidence)).toHaveLength(found);
});

describe('an answer', () => {
  const wrong = { entries: [entry({ maximum: 5 })], maxima };

  test('by a maximum that no rules gave is found', () => {
    expect(answersByOtherRules(evidenceOf(wrong))).toHaveLength(1);
  });

  test('by that of the rules is right', () => {
    expect(answersByOtherRules(evidenceOf({ entries: [entry({ maximum: 4 })], maxima }))).toEqual(
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
    /** @param limits that the key was given, at these ms after the change */
    const answersAfter = (...limits: [millis: number, maximum: number][]): string[] => {
      const sentAt = changedAt + LATER;
      const evidence = evidenceOf({
        entries: [entry({ maximum: 4, sentAt, endedAt: sentAt + 1 })],
        maxima,
        limits: limits.map(([millis, maximum]) => ({
          key: 'key',
          at: changedAt + millis,
          maximum,
          windowMillis: WINDOW_MILLIS,
          further: [],
          areOther: true,
        })),
      });
      jest.setSystemTime(changedAt - 2);
      const isEverywhere = (evidence.maxima as MaximaInForce).change({ key: 5 });
      jest.setSystemTime(changedAt);
      isEverywhere();
      return answersByOtherRules(evidence);
    };
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
  });
});
