import { RecentIds } from '../../../../../src/limiter/memory/limits/recent-ids.js';
import { MemoryBudget } from '../../../../../src/limiter/memory/memory-budget.js';

const BYTES_PER_ID = 250;

let budget: MemoryBudget;
let ids: RecentIds;
beforeEach(() => {
  budget = new MemoryBudget(4 * BYTES_PER_ID);
  ids = new RecentIds(budget);
});

const add = (id: string, mark = 0): boolean => ids.add(id, { hits: 1, mark });
const found = (...wanted: string[]): string[] => wanted.filter((id) => ids.find(id) !== undefined);

test('an id is kept with what it takes until it is removed', () => {
  expect(ids.add('a', { hits: 3, mark: 7 })).toBe(true);
  expect(ids.find('a')).toEqual({ hits: 3, mark: 7 });
  ids.find('a')!.hits = 2;
  expect(ids.find('a')).toEqual({ hits: 2, mark: 7 });
  ids.remove('a');
  expect([ids.find('a'), ids.size]).toEqual([undefined, 0]);
});

test('a generation is kept until the end of the next one', () => {
  add('a');
  ids.moveTo(0);
  ids.moveTo(1);
  add('b');
  expect([found('a', 'b'), ids.size]).toEqual([['a', 'b'], 2]);
  ids.moveTo(2);
  expect([found('a', 'b'), ids.size]).toEqual([['b'], 1]);
  ids.moveTo(3);
  expect([found('a', 'b'), ids.size]).toEqual([[], 0]);
});

test('after more than a generation without a call no id is left', () => {
  add('a');
  ids.moveTo(1);
  add('b');
  ids.moveTo(3);
  expect([found('a', 'b'), ids.size]).toEqual([[], 0]);
});

describe('the memory of an id', () => {
  test('is refused when there is none, so that nothing changes', () => {
    expect(['a', 'b', 'c', 'd', 'e'].map((id) => add(id))).toEqual([true, true, true, true, false]);
    expect([found('d', 'e'), ids.size]).toEqual([['d'], 4]);
    ids.remove('a');
    expect(add('e')).toBe(true);
  });

  test.each<[how: string, giveBack: () => void, left: number]>([
    [
      'its removal',
      () => {
        ids.remove('a');
      },
      3,
    ],
    [
      'the removal of one of an earlier generation',
      () => {
        ids.moveTo(1);
        ids.remove('a');
      },
      3,
    ],
    [
      'the end of the next generation',
      () => {
        ids.moveTo(1);
        ids.moveTo(2);
      },
      0,
    ],
    [
      'a long silence',
      () => {
        ids.moveTo(2);
      },
      0,
    ],
    [
      'the removal of all',
      () => {
        ids.moveTo(1);
        ids.clear();
      },
      0,
    ],
  ])('is given back once, by %s', (_how, giveBack, left) => {
    for (const id of ['a', 'b', 'c', 'd']) add(id);
    giveBack();
    giveBack();
    expect(budget.taken).toBe(left * BYTES_PER_ID);
    expect(ids.size).toBe(left);
  });
});

test('a copy has the ids of the original, which does not get those that the copy gets or loses', () => {
  add('a');
  ids.moveTo(1);
  add('b');
  const copy = ids.copy();
  copy.add('c', { hits: 1, mark: 0 });
  copy.moveTo(2);
  expect([copy.size, copy.find('b') !== undefined, copy.find('a')]).toEqual([2, true, undefined]);
  copy.clear();
  expect([found('a', 'b', 'c'), ids.size]).toEqual([['a', 'b'], 2]);
  expect(budget.taken).toBe(2 * BYTES_PER_ID);
});
