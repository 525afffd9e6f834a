import { WINDOW_MILLIS } from '../limits.js';
import { undeclaredLimits } from './limits-given.js';
import { evidenceOf } from './sample-evidence.js';

const declared = { key: 'key', at: 5, maximum: 4, windowMillis: WINDOW_MILLIS };

test.each([
  ['a maximum that no rules gave', { maximum: 5 }, 1],
  ['a window of another length', { windowMillis: WINDOW_MILLIS + 1 }, 1],
  ['what the rules gave', {}, 0],
])('%s is told apart', (_, other, found) => {
  const evidence = evidenceOf({
    entries: [],
    limits: [{ ...declared, ...other }],
    maxima: { key: 4 },
  });
  expect(undeclaredLimits(evidence)).toHaveLength(found);
});
