import type { FaultRecord } from '../faults/fault.js';
import { wrongAnswers } from './answers.js';
import { unfoundedApprovals } from './approvals.js';
import { lateAnswers, lateNews } from './bounds.js';
import { entry, evidenceOf, fault, observed } from './sample-evidence.js';

function noMoreHits(most: number): string {
  return JSON.stringify({ error: `hits must be at most ${most} in a correction for this key` });
}

function noFixedWindow(algorithm: string): string {
  const error = `limit must name a fixed window; default is a ${algorithm}`;
  return JSON.stringify({ error });
}

test.each([
  ['a status that the contract does not know', [entry({ status: 500 })]],
  ['a 404 for a check', [entry({ status: 404 })]],
  ['a refusal that does not say when to come back', [entry({ status: 429 })]],
  ['an outage that does not say when to come back', [entry({ status: 503, retryAfter: '0' })]],
  ['an approval without an id', [entry()]],
  [
    'a bound for corrections of a key that has a maximum',
    [entry({ kind: 'amend', status: 403, body: noMoreHits(10) })],
  ],
  [
    'what a report leaves, if that is more than the report says',
    [entry({ kind: 'report', remaining: 1, body: '{"remaining":2}' })],
  ],
  ['an id that was given before', [entry({ requestId: 'id' }), entry({ requestId: 'id' })]],
  [
    'an approval that was released before',
    [0, 1].map(() => entry({ kind: 'release', requestId: 'id' })),
  ],
])('%s is a wrong answer', (_, entries) => {
  expect(wrongAnswers(evidenceOf({ entries }))).toHaveLength(1);
});

test('answers that the contract allows are right', () => {
  const entries = [
    entry({ requestId: 'id' }),
    entry({ status: 429, retryAfter: '1' }),
    entry({ status: 503, retryAfter: '1' }),
    entry({ kind: 'release', requestId: 'id' }),
    entry({ kind: 'release', requestId: 'id', status: 404 }),
    entry({ kind: 'amend', status: 403, body: noMoreHits(1) }),
    entry({ kind: 'report', remaining: 1, body: '{"remaining":1}' }),
    entry({ kind: 'report', status: 400, body: noFixedWindow('token_bucket') }),
    entry({ outcome: 'cut', status: undefined }),
  ];
  expect(wrongAnswers(evidenceOf({ entries }))).toEqual([]);
});

test('an approval that no script has given is unfounded', () => {
  const entries = [entry({ requestId: 'given' }), entry({ requestId: 'made up' })];
  const evidence = evidenceOf({ entries, approvals: [observed('given', 0)] });
  expect(unfoundedApprovals(evidence)).toEqual([expect.stringContaining('made up')]);
});

describe('an answer', () => {
  const slow = entry({ sentAt: 0, endedAt: 4000 });

  test('to a check may not take longer than its replica stood still', () => {
    expect(lateAnswers(evidenceOf({ entries: [slow] }))).toHaveLength(1);
    const faults = [fault({ stops: [0], endedAt: 2000 })];
    expect(lateAnswers(evidenceOf({ entries: [slow], faults }))).toEqual([]);
  });

  test('has to come, in the end', () => {
    const entries = [entry({ kind: 'wait', outcome: 'pending', endedAt: undefined })];
    expect(lateAnswers(evidenceOf({ entries }))).toHaveLength(1);
  });

  test('has to follow its approval soon', () => {
    const entries = [entry({ kind: 'wait', requestId: 'id', endedAt: 4000 })];
    const approvals = [observed('id', 100)];
    expect(lateNews(evidenceOf({ entries, approvals }))).toHaveLength(1);
    const isLate = (fault: FaultRecord): boolean =>
      lateNews(evidenceOf({ entries, approvals, faults: [fault] })).length > 0;
    expect(isLate(fault({ isolates: [0], endedAt: 2500 }))).toBe(false);
    expect(isLate(fault({ silencesRedis: true, endedAt: 2500 }))).toBe(false);
    expect(isLate(fault({ isolates: [1], endedAt: 2500 }))).toBe(true);
    expect(isLate(fault({ endedAt: 2500 }))).toBe(true);
  });
});
