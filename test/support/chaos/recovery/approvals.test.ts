import { Approvals } from './approvals.js';
import type { StoredKey } from './stored-keys.js';

const MAXIMUM = 2;

/** What is found where Redis has this of the key. */
function found(
  approvals: Approvals,
  { ids = [], approved = ids.length, waiting = 0 }: Partial<StoredKey>,
  loses?: 'unreplicated' | 'memory',
  turnedAt = -Infinity,
): string {
  const stored = new Map([['key', { ids, approved, waiting }]]);
  const forgetting = loses && { loses, endedAt: 100 };
  const isOver = (_key: string, sentAt: number): boolean => sentAt < turnedAt;
  return approvals.differences(stored, MAXIMUM, { forgetting, isOver }).join('; ');
}

/** An account in which a client was told of an approval. */
function holding(requestId: string, sentAt = 1): Approvals {
  const approvals = new Approvals();
  approvals.approved('key', requestId, sentAt);
  return approvals;
}

test('approvals that Redis has as clients were told differ in nothing', () => {
  expect(found(holding('a'), { ids: ['a'] })).toBe('');
});

test('an approval is missing that Redis does not have, unless it may have forgotten it', () => {
  expect(found(holding('a', 100), {})).toMatch(/does not have/);
  expect(found(holding('a', 100), {}, 'memory')).toMatch(/does not have/);
  expect(found(holding('a', 99), {}, 'memory')).toBe('');
  expect(found(holding('a', 99), {}, undefined, 100)).toBe('');
});

test('an approval is found that nobody was told of', () => {
  const approvals = holding('a');
  approvals.undecided('key');
  expect(found(approvals, { ids: ['a', 'b'] })).toMatch(/nobody was told of/);
  expect(found(approvals, { ids: ['a', 'b'] }, 'unreplicated')).toBe('');
});

test('an approval that was released and still counts is found', () => {
  const approvals = holding('a');
  approvals.released('key', 'a', 2);
  expect(found(approvals, { ids: ['a'] })).toMatch(/released, and count/);
});

test('an approval that is given or counted twice is found', () => {
  const approvals = holding('a');
  expect(found(approvals, { ids: ['a'], approved: 2 })).toMatch(/differs from the number of ids/);
  approvals.approved('key', 'a', 2);
  expect(found(approvals, { ids: ['a'] })).toMatch(/a of key was given twice/);
});

test('more approvals than the maximum are found', () => {
  const approvals = holding('a');
  for (const id of ['b', 'c']) approvals.approved('key', id, 1);
  expect(found(approvals, { ids: ['a', 'b', 'c'] })).toMatch(/more approvals than/);
});

test('a place in which nobody waits is found', () => {
  expect(found(new Approvals(), { waiting: 1 })).toMatch(/nobody waits in/);
});

test('approvals without ids are counted', () => {
  const approvals = new Approvals();
  approvals.approvedOne('key', 1);
  expect(found(approvals, { ids: ['a'] })).toBe('');
  expect(found(approvals, {})).toMatch(/gateways/);
});
