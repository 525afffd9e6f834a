import { createHistogram } from 'node:perf_hooks';

import { type DelayMonitor, EventLoopWatch } from '../../../src/readiness/event-loop-watch.js';
import { ManualClock } from '../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../support/recorded-log.js';

const RESOLUTION_MILLIS = 10;
const SAMPLE_MILLIS = 500;
const LIMIT_MILLIS = 100;

const histogram = createHistogram();
let isEnabled: boolean;
let clock: ManualClock;
let log: RecordedLog;
let watch: EventLoopWatch;
beforeEach(() => {
  histogram.reset();
  isEnabled = false;
  clock = new ManualClock(0);
  log = recordLog();
  const monitor: DelayMonitor = {
    enable: () => (isEnabled = true),
    disable: () => !(isEnabled = false),
    reset: () => histogram.reset(),
    get mean() {
      return histogram.mean;
    },
    get count() {
      return histogram.count;
    },
  };
  const { logger } = log;
  watch = new EventLoopWatch({ limitMillis: LIMIT_MILLIS, clock, logger, monitor });
});
afterEach(() => {
  watch.stop();
});

/** Half a second in which the monitor's timer was late by these delays. */
async function halfASecond(...delaysMillis: number[]): Promise<void> {
  for (const delay of delaysMillis) histogram.record((delay + RESOLUTION_MILLIS) * 1e6);
  await clock.advance(SAMPLE_MILLIS);
}

/** A second in which the monitor's timer was always late by this delay. */
async function second(delayMillis: number): Promise<void> {
  await halfASecond(delayMillis, delayMillis);
  await halfASecond(delayMillis, delayMillis);
}

test('an event loop that keeps up gives no reason', async () => {
  await second(0);
  await second(LIMIT_MILLIS - 1);

  expect(watch.reason).toBeUndefined();
  expect(log.lines).toEqual([]);
});

test('an event loop later than the limit for a second gives a reason with its delay', async () => {
  await second(LIMIT_MILLIS + 20);

  expect(watch.reason).toBe('event loop delayed by 120 ms');
});

test('half a second gives no reason yet', async () => {
  await halfASecond(1000);

  expect(watch.reason).toBeUndefined();
});

test('one long tick among short ones gives no reason', async () => {
  const short = Array.from({ length: 30 }, () => 1);
  await halfASecond(...short);
  await halfASecond(1000, ...short);
  await halfASecond(...short);

  expect(watch.reason).toBeUndefined();
});

test('the reason ends when the delay is less than half of the limit, not before', async () => {
  await second(LIMIT_MILLIS + 1);
  await second(LIMIT_MILLIS - 1);
  expect(watch.reason).toBe('event loop delayed by 99 ms');
  await second(LIMIT_MILLIS / 2 + 1);
  expect(watch.reason).toBe('event loop delayed by 51 ms');
  await second(LIMIT_MILLIS / 2 - 1);
  expect(watch.reason).toBeUndefined();

  // After that, only the whole limit gives a reason again.
  await second(LIMIT_MILLIS - 1);
  expect(watch.reason).toBeUndefined();
});

test('an old delay no longer counts', async () => {
  await second(10_000);
  await second(0);

  expect(watch.reason).toBeUndefined();
});

test('a second without a measurement changes nothing', async () => {
  await second(LIMIT_MILLIS * 2);
  await halfASecond();
  await halfASecond();
  await halfASecond();
  expect(watch.reason).toBe('event loop delayed by 200 ms');

  await second(0);
  expect(watch.reason).toBeUndefined();
});

test('each change is logged in one line', async () => {
  await second(LIMIT_MILLIS * 2);
  await second(LIMIT_MILLIS * 3);
  await second(0);
  await second(0);
  await second(LIMIT_MILLIS * 2);

  const notReady = expect.objectContaining({
    level: 'warn',
    msg: 'not ready',
    reasons: [expect.stringMatching(/^event loop delayed by \d+ ms$/)],
  }) as unknown;
  const readyAgain = expect.objectContaining({ level: 'info', msg: 'ready again' }) as unknown;
  expect(log.lines).toEqual([notReady, readyAgain, notReady]);
});

test('the watch measures until it is stopped', async () => {
  expect(isEnabled).toBe(true);
  watch.stop();
  await second(LIMIT_MILLIS * 2);

  expect(isEnabled).toBe(false);
  expect(watch.reason).toBeUndefined();
});
