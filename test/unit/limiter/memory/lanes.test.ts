import { InstanceInMemory, lane } from '../../../support/instance-in-memory.js';

/** One request for each window. */
const ONE = { windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 100 };
const INTERACTIVE = lane('interactive', 30_000);
const BATCH = lane('batch');

/** A key of which the first window is taken. */
function fullKey(limits: Partial<typeof ONE> = {}): InstanceInMemory {
  const key = new InstanceInMemory({ ...ONE, ...limits });
  key.check('first', BATCH, { hits: limits.maxRequests ?? 1 });
  return key;
}

test('lanes are served by arrival less head start, and each in the order of arrival', () => {
  const key = fullKey();
  for (const name of ['b1', 'b2', 'b3']) key.wait(name, BATCH);
  key.now = 500;
  for (const name of ['i1', 'i2']) key.wait(name, INTERACTIVE);
  key.now = 0;
  expect(key.servedInWindowsOf(1000)).toEqual(['i1', 'i2', 'b1', 'b2', 'b3']);
});

test('nobody is overtaken by somebody who came later than the head start', () => {
  const key = fullKey({ windowMillis: 100_000 });
  key.now = 1;
  key.wait('b', BATCH);
  key.now = 30_000;
  key.wait('early', INTERACTIVE);
  key.now = 30_001;
  key.wait('same', INTERACTIVE);
  key.now = 0;
  expect(key.servedInWindowsOf(100_000)).toEqual(['early', 'b', 'same']);
});

test('of two heads with the same key, the earlier one goes first', () => {
  const key = fullKey({ windowMillis: 100_000 });
  key.now = 1;
  key.wait('b', BATCH);
  key.now = 30_001;
  key.wait('i', INTERACTIVE);
  expect(key.settleAt(100_000)).toEqual(['b']);
});

describe('a newcomer', () => {
  test('that would be the next head is approved at once, and does not wait for one that needs more', () => {
    const key = fullKey({ maxRequests: 3 });
    key.settleAt(1000);
    key.check('a', BATCH);
    expect(key.wait('large', BATCH, { hits: 3 })).toBe('waiting');
    expect(key.peek(INTERACTIVE)).toMatchObject({ decision: 'approved', turnMillis: 0 });
    expect(key.peek(BATCH)).toMatchObject({ decision: 'denied', turnMillis: 1000 });
    expect(key.check('x', BATCH)).toBe('denied');
    expect(key.check('y', INTERACTIVE)).toBe('approved');
    expect(key.wait('z', INTERACTIVE)).toBe('approved');
    expect(key.wait('full', INTERACTIVE)).toBe('waiting');
    expect(key.settleAt(2000)).toEqual(['full']);
    expect(key.settleAt(3000)).toEqual(['large']);
  });

  test('joins its lane if somebody waits there', () => {
    const key = fullKey({ maxRequests: 3 });
    key.settleAt(1000);
    key.check('a', BATCH);
    key.wait('large', INTERACTIVE, { hits: 3 });
    expect(key.wait('small', INTERACTIVE)).toBe('waiting');
    // Its head start is longer than when the others came.
    expect(key.wait('other', lane('interactive', 90_000))).toBe('waiting');
    expect(key.wait('batch', BATCH)).toBe('waiting');
  });

  test('passes nobody whose arrival less the head start is the same', () => {
    const key = fullKey({ windowMillis: 100_000, maxRequests: 3 });
    key.settleAt(100_000);
    key.check('a', BATCH);
    key.wait('large', BATCH, { hits: 3 });
    key.now = 130_000;
    expect(key.check('same', INTERACTIVE)).toBe('denied');
    expect(key.check('before', lane('interactive', 30_001))).toBe('approved');
  });

  test('passes nobody in a paused key', () => {
    const key = new InstanceInMemory({ ...ONE, maxRequests: 3 });
    key.instance.pause(0, 5000);
    key.wait('b', BATCH);
    expect(key.check('i', INTERACTIVE)).toBe('paused');
  });

  test('passes nobody whose approval lacks a place for its id, or for its hold', () => {
    for (const bounds of [{ maxIdsPerKey: 1 }, { maxHoldsPerKey: 1 }]) {
      const key = new InstanceInMemory({ ...ONE, maxRequests: 9 }, bounds);
      const held = { holdMillis: 1000 };
      const isOfId = 'maxIdsPerKey' in bounds;
      key.check('a', BATCH, isOfId ? {} : held);
      expect(key.wait('i', INTERACTIVE, isOfId ? {} : held)).toBe('waiting');
      expect(key.check('b', BATCH, isOfId ? held : {})).toBe('denied');
    }
  });
});

test('waiters that leave are passed at once, wherever they wait', () => {
  const key = fullKey();
  for (const name of ['b1', 'b2', 'b3']) key.wait(name, BATCH);
  for (const name of ['i1', 'i2', 'i3']) key.wait(name, INTERACTIVE);
  for (const name of ['i1', 'b2', 'i3']) key.withdraw(name);
  expect(key.instance.waiting).toBe(3);
  expect(key.servedInWindowsOf(1000)).toEqual(['i2', 'b1', 'b3']);
});

test('a check takes over the place that its request has, whatever lane it names', () => {
  const key = fullKey();
  key.wait('b1', BATCH);
  key.checkKnown('known', BATCH);
  expect(key.checkKnown('known', INTERACTIVE)).toBe('takes_over');
  key.wait('b2', BATCH);
  expect(key.servedInWindowsOf(1000)).toEqual(['b1', 'known', 'b2']);
});

test('waiters keep the head start with which they came', () => {
  const key = fullKey({ windowMillis: 100_000 });
  key.wait('b', BATCH);
  key.now = 50_000;
  key.wait('old', lane('interactive'));
  key.wait('new', lane('interactive', 60_000));
  key.now = 0;
  expect(key.servedInWindowsOf(100_000)).toEqual(['b', 'old', 'new']);
});
