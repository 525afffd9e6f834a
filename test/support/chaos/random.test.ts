import { Random } from './random.js';

function draws(random: Random): number[] {
  return Array.from({ length: 100 }, () => random.whole(1, 6));
}

test('every whole number of a range comes, and no other', () => {
  expect([...new Set(draws(new Random(1)))].sort()).toEqual([1, 2, 3, 4, 5, 6]);
});

test('a stream of its own does not depend on what others draw', () => {
  const [one, other] = [new Random(7), new Random(7)];
  const stream = one.fork('load');
  one.next();
  stream.next();
  const same = other.fork('load');
  same.next();
  expect(draws(same)).toEqual(draws(stream));
  expect(draws(new Random(7).fork('load'))).not.toEqual(draws(new Random(7).fork('faults')));
});

test('a shuffle loses nothing', () => {
  const items = [1, 2, 3, 4, 5, 6, 7, 8];
  const shuffled = new Random(3).shuffled(items);
  expect(shuffled).not.toEqual(items);
  expect([...shuffled].sort()).toEqual(items);
});
