import { group, InstanceInMemory, lane } from '../../../support/instance-in-memory.js';

/** One request for each window. */
const ONE = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 100 };
const [A, B, C] = [group('a'), group('b'), group('c')];

/** A key of which the first window is taken. */
function fullKey(limits: Partial<typeof ONE> = {}): InstanceInMemory {
  const key = new InstanceInMemory({ ...ONE, ...limits });
  key.check('first', A, { hits: limits.maxRequests ?? 1 });
  return key;
}

test('groups take turns, and each is served in the order of arrival', () => {
  const key = fullKey();
  for (const name of ['a1', 'a2', 'a3', 'a4']) key.wait(name, A);
  for (const name of ['b1', 'b2']) key.wait(name, B);
  key.wait('none', group(''));
  expect(key.servedInWindowsOf(1000)).toEqual(['a1', 'b1', 'none', 'a2', 'b2', 'a3', 'a4']);
});

test('groups get shares by weight and hits', () => {
  const key = fullKey({ maxRequests: 4 });
  for (let i = 1; i <= 8; i += 1) key.wait(`g${i}`, group('gold', 4), { hits: 4 });
  for (let i = 1; i <= 2; i += 1) key.wait(`a${i}`, A, { hits: 4 });
  expect(key.servedInWindowsOf(1000)).toEqual([
    ...['g1', 'g2', 'g3', 'g4', 'a1'],
    ...['g5', 'g6', 'g7', 'g8', 'a2'],
  ]);
});

test('a group alone gets everything', () => {
  const key = fullKey({ maxRequests: 3 });
  for (let i = 1; i <= 6; i += 1) key.wait(`a${i}`, A);
  expect(key.settleAt(1000)).toEqual(['a1', 'a2', 'a3']);
});

test('a group does not pay for those of it who have left', () => {
  const key = fullKey();
  const names = Array.from({ length: 20 }, (_, i) => `a${i}`);
  for (const name of names) key.wait(name, A);
  for (const name of ['b1', 'b2', 'b3']) key.wait(name, B);
  for (const name of names.slice(0, -1)) key.withdraw(name);
  expect(key.servedInWindowsOf(1000)).toEqual(['a19', 'b1', 'b2', 'b3']);
});

test('a group whose head leaves has its turn by what the next one needs', () => {
  const key = fullKey({ maxRequests: 5 });
  key.wait('large', A, { hits: 5 });
  key.wait('small', A);
  for (const name of ['b1', 'b2', 'b3']) key.wait(name, B, { hits: 2 });
  key.withdraw('large');
  expect(key.settleAt(1000)).toEqual(['small', 'b1', 'b2']);
});

test('a group that comes back has its turn after those who wait', () => {
  const key = fullKey();
  key.wait('a1', A);
  for (const name of ['b1', 'b2', 'b3']) key.wait(name, B);
  expect(key.settleAt(1000)).toEqual(['a1']);
  key.wait('a2', A);
  expect(key.servedInWindowsOf(1000)).toEqual(['b1', 'b2', 'a2', 'b3']);
});

test('groups that come once do not starve one that waits', () => {
  const key = fullKey();
  for (const name of ['a1', 'a2', 'a3']) key.wait(name, A);
  const served: string[] = [];
  for (let i = 1; i <= 6; i += 1) {
    key.wait(`once${i}`, group(`once${i}`));
    served.push(...key.settleAt(i * 1000));
  }
  expect(served.filter((name) => name.startsWith('a'))).toEqual(['a1', 'a2', 'a3']);
});

test('nothing is owed once nobody waits', () => {
  const key = fullKey();
  for (const name of ['a1', 'a2', 'a3']) key.wait(name, A);
  key.servedInWindowsOf(1000);
  key.check('again', A);
  key.wait('b1', B, { hits: 1 });
  key.wait('a4', A);
  key.wait('b2', B);
  key.wait('a5', A);
  expect(key.servedInWindowsOf(1000)).toEqual(['b1', 'a4', 'b2', 'a5']);
});

describe('behind a head that lacks room', () => {
  /** Two of five hits are left. The tag of the head is 4. */
  function keyWithLargeHead(): InstanceInMemory {
    const key = new InstanceInMemory({ ...ONE, maxRequests: 5 });
    key.check('x', A, { hits: 3 });
    key.wait('large', A, { hits: 4 });
    return key;
  }

  test('a newcomer of a group is approved if its tag would be smaller', () => {
    const key = keyWithLargeHead();
    expect(key.check('equal', group('c', 1), { hits: 2 })).toBe('approved');
    const other = keyWithLargeHead();
    other.wait('larger', group('c', 2), { hits: 4 });
    expect(other.check('b', group('d', 1), { hits: 2 })).toBe('denied');
    expect(other.check('b', group('d', 2), { hits: 2 })).toBe('approved');
  });

  test('the turn of a newcomer moves the virtual time on, so that newcomers do not pass it without end', () => {
    const key = keyWithLargeHead();
    const decisions = [];
    for (let i = 0; i < 5; i += 1) {
      const name = `n${i}`;
      decisions.push(key.check(name, group(name)));
      key.release(name);
    }
    // Their tags are 1 to 3, and then 4: of two with the same tag, the one goes first that waits.
    expect(decisions).toEqual(['approved', 'approved', 'approved', 'denied', 'denied']);
  });

  test('a newcomer passes nobody of its group, and none without a group passes a group', () => {
    const key = keyWithLargeHead();
    for (const list of [A, undefined, lane('i', 30_000)]) {
      expect(key.check('b', list)).toBe('denied');
    }
  });
});

test('while nobody waits, approvals change no tag', () => {
  const key = new InstanceInMemory({ ...ONE, maxRequests: 3 });
  for (let i = 1; i <= 3; i += 1) expect(key.check(`x${i}`, A)).toBe('approved');
  for (const name of ['a1', 'a2']) key.wait(name, A);
  key.wait('b1', B);
  expect(key.settleAt(1000)).toEqual(['a1', 'b1', 'a2']);
});

test('a group has places of its own, within those of the queue', () => {
  const key = fullKey({ maxRequestsInQueue: 4 });
  const of = (name: string): ReturnType<typeof group> => group(name, 1, 2);
  for (const name of ['a1', 'a2']) expect(key.wait(name, of('a'))).toBe('waiting');
  expect(key.wait('a3', of('a'))).toBe('queue_full_of_group');
  for (const name of ['b1', 'b2']) expect(key.wait(name, of('b'))).toBe('waiting');
  expect(key.wait('a3', of('a'))).toBe('queue_full');
  expect(key.wait('c1', of('c'))).toBe('queue_full');
  key.withdraw('b1');
  expect(key.wait('a3', of('a'))).toBe('queue_full_of_group');
  key.withdraw('a1');
  expect(key.wait('a3', of('a'))).toBe('waiting');
});

test('a peek changes no turn, and sees those served whose turn has come', () => {
  const key = fullKey({ maxRequests: 2 });
  for (const name of ['a1', 'a2', 'a3']) key.wait(name, A);
  for (const name of ['b1', 'b2', 'b3']) key.wait(name, B);
  key.now = 1000;
  // Of each group, two wait on.
  expect(key.peek(A)).toMatchObject({ decision: 'denied', turnMillis: 2000 });
  expect(key.peek(C)).toMatchObject({ decision: 'denied', turnMillis: 1000 });
  expect(key.instance.waiting).toBe(6);
  expect(key.settleAt(1000)).toEqual(['a1', 'b1']);
  key.peek(A);
  expect(key.servedInWindowsOf(1000)).toEqual(['a2', 'b2', 'a3', 'b3']);
});

test('a thousand groups that join and leave have their turns in the order of their tags', () => {
  const key = fullKey({ maxRequestsInQueue: 1000 });
  const names = Array.from({ length: 1000 }, (_, i) => `g${i}`);
  const sharesOf = (i: number): number => ((i * 7919) % 1000) + 1;
  for (const [i, name] of names.entries()) key.wait(name, group(name, sharesOf(i)));
  const left = names.filter((_, i) => i % 3 > 0);
  for (const [i, name] of names.entries()) if (i % 3 === 0) key.withdraw(name);
  const expected = left.toSorted((a, b) => sharesOf(names.indexOf(b)) - sharesOf(names.indexOf(a)));
  expect(key.servedInWindowsOf(1000)).toEqual(expected);
});

test('a large request that leaves gives its group no more than its next turn', () => {
  const key = new InstanceInMemory({ ...ONE, maxRequests: 6 });
  // One hit is left of each window.
  key.check('held', A, { hits: 5, holdMillis: 1_000_000 });
  key.check('first', A);
  key.wait('large', A, { hits: 6 });
  for (const name of ['a1', 'a2', 'a3']) key.wait(name, A);
  for (let i = 1; i <= 8; i += 1) key.wait(`b${i}`, B);
  for (let i = 1; i <= 4; i += 1) expect(key.settleAt(i * 1000)).toEqual([`b${i}`]);
  key.withdraw('large');
  for (const name of ['c1', 'c2', 'c3']) key.wait(name, C);
  expect(key.servedInWindowsOf(1000)).toEqual([
    ...['a1', 'a2', 'b5', 'c1', 'a3', 'b6', 'c2', 'b7', 'c3', 'b8'],
  ]);
});
