import { jest } from '@jest/globals';

import { MaximaInForce } from './maxima-in-force.js';

beforeEach(() => {
  jest.useFakeTimers({ now: 1000 });
});
afterEach(() => {
  jest.useRealTimers();
});

test('before any change there is one maximum', () => {
  const maxima = new MaximaInForce({ key: 8 });
  expect(maxima.highest('key', 0, 5000)).toBe(8);
  expect(maxima.allows('key', 8, 3000, 3000)).toBe(true);
  expect(maxima.allows('key', 9, 3000, 3000)).toBe(false);
});

test('while a change is under way there are two, and afterwards the new one', () => {
  const maxima = new MaximaInForce({ key: 8 });
  expect(maxima.isChangingIn(1500, 1500)).toBe(false);
  const isEverywhere = maxima.change({ key: 3 });
  expect(maxima.isChangingIn(1500, 1500)).toBe(true);
  expect(maxima.highest('key', 1500, 2000)).toBe(8);
  jest.setSystemTime(2000);
  isEverywhere();
  expect(maxima.isChangingIn(999, 999)).toBe(false);
  expect(maxima.isChangingIn(2000, 2000)).toBe(true);
  expect(maxima.isChangingIn(2001, 2001)).toBe(false);
  expect(maxima.highest('key', 500, 900)).toBe(8);
  expect(maxima.highest('key', 1999, 2499)).toBe(8);
  expect(maxima.highest('key', 2001, 2500)).toBe(3);
  expect(maxima.allows('key', 3, 999, 999)).toBe(false);
  expect(maxima.allows('key', 8, 2000, 2000)).toBe(true);
  expect(maxima.allows('key', 8, 2001, 2001)).toBe(false);
});
