import { WINDOW_MILLIS } from '../limits.js';
import { answersByOtherRules, undeclaredLimits } from './limits-given.js';
import { entry, evidenceOf, fault } from './sample-evidence.js';

const maxima = { key: 4 };

test.each([
  ['a maximum that no rules gave', { maximum: 5 }, 1],
  ['a window of another length', { windowMillis: WINDOW_MILLIS + 1 }, 1],
  ['what the rules gave', {}, 0],
])('of the limits of a script, %s is told apart', (_, other, found) => {
  const declared = { key: 'key', at: 5, maximum: 4, windowMillis: WINDOW_MILLIS };
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
});
