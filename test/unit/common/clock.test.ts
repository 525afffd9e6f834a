import { jest } from '@jest/globals';

import { systemClock } from '../../../src/common/clock.js';

const DAY_MILLIS = 24 * 60 * 60 * 1000;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

describe('systemClock.after', () => {
  const calls: number[] = [];
  let cancelTimer: () => void;
  const callAfter = (delayMillis: number): void => {
    calls.length = 0;
    const start = Date.now();
    cancelTimer = systemClock.after(delayMillis, () => calls.push(Date.now() - start));
  };

  test.each([0, 1, 1000, 2 ** 31 - 1, 2 ** 31, 60 * DAY_MILLIS, 366 * DAY_MILLIS])(
    'calls back once, after exactly %d ms',
    (delayMillis) => {
      callAfter(delayMillis);
      jest.advanceTimersByTime(delayMillis + 100 * DAY_MILLIS);
      expect(calls).toEqual([delayMillis]);
    },
  );

  test('goes on waiting if Node fires a timer early', () => {
    const { setTimeout: fakeTimeout } = globalThis;
    const early = jest
      .spyOn(globalThis, 'setTimeout')
      .mockImplementationOnce((callback, millis) => fakeTimeout(callback, millis! - 1));
    callAfter(1000);
    early.mockRestore();
    jest.advanceTimersByTime(999);
    expect(calls).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(calls).toEqual([1000]);
  });

  test('takes a delay below 0 as 0', () => {
    callAfter(-5);
    jest.advanceTimersByTime(0);
    expect(calls).toEqual([0]);
  });

  test('never calls back once it was cancelled', () => {
    callAfter(1000);
    jest.advanceTimersByTime(999);
    cancelTimer();
    jest.advanceTimersByTime(DAY_MILLIS);
    expect(calls).toEqual([]);
    expect(jest.getTimerCount()).toBe(0);
  });

  test('can be cancelled in a later part of a long wait', () => {
    callAfter(60 * DAY_MILLIS);
    jest.advanceTimersByTime(55 * DAY_MILLIS);
    expect(jest.getTimerCount()).toBe(1);
    cancelTimer();
    expect(jest.getTimerCount()).toBe(0);
    jest.advanceTimersByTime(60 * DAY_MILLIS);
    expect(calls).toEqual([]);
  });

  test('can be cancelled after it has called back', () => {
    callAfter(10);
    jest.advanceTimersByTime(10);
    cancelTimer();
    expect(calls).toEqual([10]);
  });

  // If this failed, the tests above would pass with a plain setTimeout.
  test('a plain timer with a long delay fires too early', () => {
    const start = Date.now();
    let firedAfter = -1;
    setTimeout(() => (firedAfter = Date.now() - start), 60 * DAY_MILLIS);
    jest.advanceTimersByTime(60 * DAY_MILLIS);
    expect(firedAfter).toBe(1);
  });
});

describe('systemClock.now', () => {
  test('does not follow a step of the wall clock', () => {
    const before = systemClock.now();
    jest.setSystemTime(Date.now() - DAY_MILLIS);
    expect(systemClock.now()).toBe(before);
    jest.advanceTimersByTime(250);
    expect(systemClock.now()).toBe(before + 250);
  });

  test('counts from 1970', () => {
    jest.useRealTimers();
    const before = Date.now() - DAY_MILLIS;
    expect(systemClock.now()).toBeGreaterThan(before);
    expect(systemClock.now()).toBeLessThan(before + 2 * DAY_MILLIS);
  });
});
