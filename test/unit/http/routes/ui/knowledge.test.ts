import { knowledgeOf } from '../../../../../src/http/routes/ui/knowledge.js';

const NOW = 100_000;
const FLEET = { isCurrent: true, readAt: NOW - 500 };
const SURVEY = { isComplete: true, ageMillis: 7000, failure: undefined };
const FRESH = { isCurrent: true };
const OLD = { isCurrent: false };

test('an answer is complete if all replicas, keys and rows could be read', () => {
  const complete = { isComplete: true, asOfMillis: NOW, nowMillis: NOW };
  expect(knowledgeOf(FLEET, SURVEY, [FRESH], NOW)).toEqual(complete);
  const forbidden = { ...SURVEY, failure: 'forbidden' } as const;
  expect(knowledgeOf(FLEET, forbidden, [FRESH], NOW)).toEqual(complete);
});

test.each([
  ['the replicas', { ...FLEET, isCurrent: false }, SURVEY, [FRESH], NOW - 500],
  ['a row', FLEET, SURVEY, [FRESH, OLD], NOW - 7000],
  ['the keys', FLEET, { ...SURVEY, failure: 'unavailable' } as const, [], NOW - 7000],
  ['anything', { ...FLEET, isCurrent: false }, SURVEY, [OLD], NOW - 7000],
  ['anything ever', { isCurrent: false, readAt: undefined }, SURVEY, [], null],
  ['the keys ever', FLEET, { ...SURVEY, isComplete: false }, [OLD], null],
])('without %s it is as of what was read last', (_what, fleet, survey, rows, asOfMillis) => {
  const expected = { isComplete: false, asOfMillis, nowMillis: NOW };
  expect(knowledgeOf(fleet, survey, rows, NOW)).toEqual(expected);
});
