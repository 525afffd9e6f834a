import { readFileSync } from 'node:fs';

import { LABELS, otherTerm, STATES, TERMS, termsOf } from '../../../src/limiter/request.js';

test('the terms of a check are those in the list, and nothing else that it says', () => {
  const list = { kind: 'lane', name: 'a', headStartMillis: 0 } as const;
  const terms = { hits: 2, holdMillis: 1000, holder: 'job 1', keepMillis: 1000, maxWaitMillis: 5 };
  const check = { key: 'k', canWait: true, takesRest: true, ...terms, list };
  expect(termsOf(check)).toEqual({ ...terms, list });
  expect(Object.keys(termsOf(check))).toEqual(TERMS);
  expect(Object.keys(termsOf({ hits: undefined }))).toEqual([]);
});

test.each([
  [{}, { hits: 1 }, undefined],
  [{ hits: 2 }, {}, 'other_hits'],
  [{ holdMillis: 1000 }, { holdMillis: 1001, holder: 'a' }, 'other_hold'],
  [{ holdMillis: 1000 }, { holdMillis: 1000, holder: 'a' }, 'other_holder'],
])('%j and %j differ by %s', (one, other, expected) => {
  expect(otherTerm(['hits', 'holdMillis', ...LABELS], one, other)).toBe(expected);
});

test('how-it-works.md has the same table of states as the limiters', () => {
  const page = readFileSync('docs/how-it-works.md', 'utf8');
  for (const [state, { counts, next }] of Object.entries(STATES)) {
    const row = page.split('\n').find((line) => line.startsWith(`| ${state} `));
    const [, , countsIn, becomes = ''] = row?.split('|').map((cell) => cell.trim()) ?? [];
    const named = Object.keys(STATES).filter((other) => new RegExp(`\\b${other}\\b`).test(becomes));
    expect([state, countsIn]).toEqual([state, counts]);
    if (next.length > 0) expect(named.toSorted()).toEqual(next.toSorted());
    else expect(becomes).toMatch(/^forgotten/);
  }
});
