import fc from 'fast-check';

import { Moments } from '../../../../src/limiter/memory/moments.js';

const times = fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 60 });

function momentsAt(list: readonly number[]): Moments {
  const moments = new Moments();
  for (const [i, at] of list.entries()) moments.add({ id: `${i}`, at });
  return moments;
}

test('moments come first to last, whatever their order was', () => {
  fc.assert(
    fc.property(times, (list) => {
      const moments = momentsAt(list);
      const found: number[] = [];
      for (let next = moments.first; next; next = moments.first) {
        found.push(next.at);
        moments.removeFirst();
      }
      expect(found).toEqual([...list].sort((a, b) => a - b));
      expect(moments.size).toBe(0);
    }),
  );
});

test('a visit finds all moments up to a time, once', () => {
  fc.assert(
    fc.property(times, fc.integer({ min: 0, max: 50 }), (list, time) => {
      const visited: string[] = [];
      momentsAt(list).visitUntil(time, ({ id }) => visited.push(id));
      const expected = [...list.keys()].filter((i) => list[i]! <= time).map(String);
      expect(visited.sort()).toEqual(expected.sort());
    }),
  );
});

test('a visit of three moments among thousands looks at few others', () => {
  const moments = new Moments();
  let looks = 0;
  for (let i = 0; i < 10_000; i += 1) {
    moments.add({
      id: `${i}`,
      get at() {
        looks += 1;
        return (i * 7919) % 10_000;
      },
    });
  }
  looks = 0;
  let visits = 0;
  moments.visitUntil(2, () => (visits += 1));
  expect(visits).toBe(3);
  expect(looks).toBeLessThanOrEqual(3 * 3);
});
