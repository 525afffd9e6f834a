import { jest } from '@jest/globals';

import { ownLimit } from '../../../../src/limiter/limits.js';
import { LimitsInForce } from './limits-in-force.js';

const SLIDING = { name: 'sliding_window', steps: 2 } as const;

beforeEach(() => {
  jest.useFakeTimers({ now: 1000 });
});
afterEach(() => {
  jest.useRealTimers();
});

test('before any change there is one maximum', () => {
  const limits = new LimitsInForce({ key: ownLimit(500, 8) });
  expect(limits.highest('key', 0, 5000)).toBe(8);
  expect(limits.allows('key', 8, 3000, 3000)).toBe(true);
  expect(limits.allows('key', 9, 3000, 3000)).toBe(false);
});

test('while a change is under way there are two, and afterwards the new one', () => {
  const limits = new LimitsInForce({ key: ownLimit(500, 8) });
  expect(limits.isChangingIn(1500, 1500)).toBe(false);
  const isEverywhere = limits.change({ key: ownLimit(500, 3) });
  expect(limits.isChangingIn(1500, 1500)).toBe(true);
  expect(limits.highest('key', 1500, 2000)).toBe(8);
  jest.setSystemTime(2000);
  isEverywhere();
  expect(limits.isChangingIn(999, 999)).toBe(false);
  expect(limits.isChangingIn(2000, 2000)).toBe(true);
  expect(limits.isChangingIn(2001, 2001)).toBe(false);
  expect(limits.highest('key', 500, 900)).toBe(8);
  expect(limits.highest('key', 1999, 2499)).toBe(8);
  expect(limits.highest('key', 2001, 2500)).toBe(3);
  expect(limits.allows('key', 3, 999, 999)).toBe(false);
  expect(limits.allows('key', 8, 2000, 2000)).toBe(true);
  expect(limits.allows('key', 8, 2001, 2001)).toBe(false);
});

test('a limit is declared with its algorithm, and only while its rules may be in force', () => {
  const limits = new LimitsInForce({ key: ownLimit(500, 8, SLIDING) });
  expect(limits.declares('key', ownLimit(500, 8, { ...SLIDING }), 3000, 3000)).toBe(true);
  expect(limits.declares('key', ownLimit(500, 8), 3000, 3000)).toBe(false);
  const ofDays = (timeZone: string) =>
    ownLimit(500, 8, { name: 'fixed_window', calendar: { unit: 'day', timeZone } });
  expect(limits.declares('key', ofDays('UTC'), 3000, 3000)).toBe(false);
  expect(limits.declares('other', ownLimit(500, 8, SLIDING), 3000, 3000)).toBe(false);
  limits.change({ key: ownLimit(500, 8) })();
  expect(limits.declares('key', ownLimit(500, 8, SLIDING), 1001, 3000)).toBe(false);
  expect(limits.declares('key', ownLimit(500, 8), 1001, 3000)).toBe(true);
  const other = new LimitsInForce({ key: ofDays('UTC') });
  expect(other.declares('key', ofDays('UTC'), 3000, 3000)).toBe(true);
  expect(other.declares('key', ofDays('Europe/Berlin'), 3000, 3000)).toBe(false);
});
