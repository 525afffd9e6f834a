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

describe('an account', () => {
  test('has nothing to say where Redis has what clients were told', () => {
    expect(found(holding('a'), { ids: ['a'] })).toBe('');
  });

  test('finds an approval that Redis does not have', () => {
    expect(found(holding('a'), {})).toMatch(/does not have/);
  });

  test('finds an approval that Redis did not have when it was released', () => {
    const approvals = holding('a');
    approvals.notFound('key', 'a');
    approvals.released('key', 'a', 2);
    expect(found(approvals, {})).toMatch(/does not have/);
  });

  test('finds an approval that nobody was told of', () => {
    const approvals = holding('a');
    approvals.undecided('key');
    expect(found(approvals, { ids: ['a', 'b'] })).toMatch(/nobody was told of/);
  });

  test('finds a release that does not count', () => {
    const approvals = holding('a');
    approvals.released('key', 'a', 2);
    expect(found(approvals, { ids: ['a'] })).toMatch(/released, and count/);
  });

  test('finds an id that is given twice', () => {
    const approvals = holding('a');
    approvals.approved('key', 'a', 2);
    expect(found(approvals, { ids: ['a'] })).toMatch(/a of key was given twice/);
  });

  test('finds an approval that is counted twice', () => {
    expect(found(holding('a'), { ids: ['a'], approved: 2 })).toMatch(
      /differs from the number of ids/,
    );
  });

  test('finds more approvals than the maximum', () => {
    const approvals = holding('a');
    for (const id of ['b', 'c']) approvals.approved('key', id, 1);
    expect(found(approvals, { ids: ['a', 'b', 'c'] })).toMatch(/more approvals than/);
  });

  test('finds a place in which nobody waits', () => {
    expect(found(new Approvals(), { waiting: 1 })).toMatch(/nobody waits in/);
  });

  test('counts approvals that have no ids', () => {
    const approvals = new Approvals();
    approvals.approvedOne('key', 1);
    expect(found(approvals, { ids: ['a'] })).toBe('');
    expect(found(approvals, {})).toMatch(/gateways/);
    expect(found(approvals, { ids: ['a', 'b'] })).toMatch(/nobody was told of/);
  });

  test('expects of a Redis that forgets only what came after that', () => {
    expect(found(holding('a', 99), {}, 'memory')).toBe('');
    expect(found(holding('a', 100), {}, 'memory')).toMatch(/does not have/);
  });

  test('expects of a window only what came after its begin, and finds there what nobody was told of', () => {
    expect(found(holding('a', 99), {}, undefined, 100)).toBe('');
    expect(found(holding('a', 100), {}, undefined, 100)).toMatch(/does not have/);
    const approvals = holding('a', 99);
    approvals.undecided('key');
    expect(found(approvals, { ids: ['b'] }, undefined, 100)).toMatch(/nobody was told of/);
  });

  test('lets a key that was lost count as full', () => {
    expect(found(new Approvals(), { approved: MAXIMUM }, 'memory')).toBe('');
    expect(found(new Approvals(), { approved: 1 }, 'memory')).toMatch(
      /differs from the number of ids/,
    );
  });

  test('excuses a release that is forgotten, and a withdrawal', () => {
    const approvals = holding('a', 1);
    approvals.released('key', 'a', 99);
    approvals.undecided('key');
    expect(found(approvals, { ids: ['a', 'b'] }, 'unreplicated')).toBe('');
    expect(found(approvals, { ids: ['b', 'c'] }, 'unreplicated')).toMatch(/nobody was told of/);
  });
});
