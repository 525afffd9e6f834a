import { jest } from '@jest/globals';

import { FailureLog } from '../../../../src/redis/availability/failure-log.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';

const error = (number: number): Error => new Error(`failure ${number}`);

let log: RecordedLog;
let failures: FailureLog;
beforeEach(() => {
  jest.useFakeTimers();
  log = recordLog();
  failures = new FailureLog(log.logger);
});
afterEach(() => {
  jest.useRealTimers();
});

test('the first failure is logged at once', () => {
  failures.note('check', error(1));
  expect(log.lines).toMatchObject([
    {
      level: 'warn',
      msg: 'store call failed',
      script: 'check',
      reason: 'failure 1',
      failures: 1,
    },
  ]);
});

test('more failures within a second are counted, for the next line', () => {
  failures.note('check', error(1));
  jest.advanceTimersByTime(999);
  for (let i = 2; i <= 100; i += 1) failures.note('check', error(i));
  expect(log.lines).toHaveLength(1);
  jest.advanceTimersByTime(1);
  failures.note('settle', error(101));
  expect(log.lines.slice(1)).toMatchObject([
    { script: 'settle', reason: 'failure 101', failures: 100 },
  ]);
});

test('each line counts from the one before', () => {
  for (const number of [1, 2, 3]) {
    failures.note('check', error(number));
    jest.advanceTimersByTime(1000);
  }
  expect(log.lines.map((line) => line.failures)).toEqual([1, 1, 1]);
});

test('nothing is logged while nothing fails', () => {
  failures.note('check', error(1));
  jest.advanceTimersByTime(100_000);
  expect(log.lines).toHaveLength(1);
});
