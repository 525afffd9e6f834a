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
  test('is taken once if the id comes again', () => {
    add('a', 1);
    add('a', 2);
    expect(ids.find('a')).toEqual({ hits: 1, mark: 2 });
    expect([budget.taken, ids.size]).toEqual([BYTES_PER_ID, 1]);
  });

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

test('a copy counts the ids of each generation, and its changes leave the original as it is', () => {
  add('a');
  ids.moveTo(1);
  for (const id of ['b', 'c']) add(id);
  const copy = ids.copy();
  const sizes = [1, 2, 3].map((generation) => {
    copy.moveTo(generation);
    return copy.size;
  });
  expect(sizes).toEqual([3, 2, 0]);
  copy.add('d', { hits: 1, mark: 0 });
  expect(copy.size).toBe(1);
  copy.moveTo(5);
  expect(copy.size).toBe(0);
  copy.add('d', { hits: 1, mark: 0 });
  copy.clear();
  expect(copy.size).toBe(0);
  expect([found('a', 'b', 'c', 'd'), ids.size]).toEqual([['a', 'b', 'c'], 3]);
  expect(budget.taken).toBe(3 * BYTES_PER_ID);
});
