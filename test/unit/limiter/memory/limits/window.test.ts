import fc from 'fast-check';

import { Window } from '../../../../../src/limiter/memory/limits/window.js';

test('ends its length after its start, and is idle three windows later', () => {
  const window = new Window(500, 1000);
  expect(window.millis).toBe(1000);
  expect(window.end).toBe(1500);
  expect(window.idleAt).toBe(4500);
});

test('stays anchored to its first start, whenever it is rolled', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.integer({ min: 1, max: 100_000 }),
      fc.array(fc.nat({ max: 1_000_000 })),
      (start, millis, steps) => {
        const window = new Window(start, millis);
        let now = start;
        for (const step of steps) {
          now += step;
          window.rollTo(now, millis);
          expect((window.end - start) % millis).toBe(0);
          expect(now).toBeLessThan(window.end);
          expect(now).toBeGreaterThanOrEqual(window.end - millis);
        }
      },
    ),
  );
});

test.each([
  [1499, 1500, 1000],
  [1500, 1800, 300],
  [1799, 1800, 300],
  [1800, 2100, 300],
  [2600, 2800, 300],
])('a changed length counts from the last boundary on: at %d', (now, end, millis) => {
  const window = new Window(500, 1000);
  window.rollTo(now, 300);
  expect([window.end, window.millis]).toEqual([end, millis]);
});
