import { createHistogram } from 'node:perf_hooks';

import { StoreUnavailableError } from '../../../src/limiter/errors.js';
import type { StoreCondition } from '../../../src/limiter/limiter.js';
import {
  type Assessment,
  isReadySoon,
  ServiceReadiness,
} from '../../../src/readiness/readiness.js';
import { type DelayMonitor, EventLoopWatch } from '../../../src/readiness/event-loop-watch.js';
import { ManualClock } from '../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../support/recorded-log.js';

describe('readiness', () => {
  const DELAYED = 'event loop delayed by 300 ms';

  /** A store whose pings are answered by the test. */
  class StoreStub {
    readonly pings: {
      resolve: (condition: StoreCondition) => void;
      reject: (error: Error) => void;
    }[] = [];

    ping(): Promise<StoreCondition> {
      return new Promise((resolve, reject) => this.pings.push({ resolve, reject }));
    }
  }

  let limiter: StoreStub;
  let eventLoop: { reason: string | undefined };
  let evictionPolicy: string | undefined;
  beforeEach(() => {
    limiter = new StoreStub();
    eventLoop = { reason: undefined };
    evictionPolicy = undefined;
  });

  /** Of a service that does not listen yet. */
  function createEarly(readyDuringOutage = false): ServiceReadiness {
    return new ServiceReadiness({
      limiter,
      eventLoop,
      evictionPolicy: () => evictionPolicy,
      readyDuringOutage,
    });
  }

  function create(readyDuringOutage = false): ServiceReadiness {
    const readiness = createEarly(readyDuringOutage);
    readiness.startServing();
    return readiness;
  }

  /** An assessment during which the store answers its next ping. */
  function assess(
    readiness: ServiceReadiness,
    answer: StoreCondition | Error,
  ): Promise<Assessment> {
    const before = limiter.pings.length;
    const assessment = readiness.assess();
    const { resolve, reject } = limiter.pings[before]!;
    if (answer instanceof Error) reject(answer);
    else resolve(answer);
    return assessment;
  }

  test('all reasons are given', async () => {
    eventLoop.reason = DELAYED;
    const { reasons } = await assess(create(), new StoreUnavailableError());
    expect(reasons).toEqual([DELAYED, 'store unavailable']);
  });

  test('a full store is a remark, not a reason', async () => {
    const remarks = ['store full: checks of new keys fail'];
    expect(await assess(create(), 'full')).toEqual({ reasons: [], remarks });
  });

  test('a store that may evict keys is a remark, not a reason, also if an outage is none', async () => {
    evictionPolicy = 'allkeys-lru';
    expect(await create(true).assess()).toEqual({
      reasons: [],
      remarks: ['store may evict keys by allkeys-lru, and limits with them: set noeviction'],
    });
  });

  test('concurrent assessments share one ping of the store', async () => {
    const readiness = create();
    const assessments = Promise.all([readiness.assess(), readiness.assess(), readiness.assess()]);
    limiter.pings[0]!.reject(new StoreUnavailableError());

    const reasons = (await assessments).map((assessment) => assessment.reasons);
    expect(reasons).toEqual(Array.from({ length: 3 }, () => ['store unavailable']));
    expect(limiter.pings).toHaveLength(1);
  });

  test('a fault of Sluice is not taken for an outage', async () => {
    const readiness = create();
    const fault = new Error('no such command');
    await expect(assess(readiness, fault)).rejects.toBe(fault);
    expect((await assess(readiness, 'ok')).reasons).toEqual([]);
  });

  test('readyDuringOutage does not ask the store', async () => {
    eventLoop.reason = DELAYED;

    expect((await create(true).assess()).reasons).toEqual([DELAYED]);
    expect(limiter.pings).toEqual([]);
  });

  test('a service that does not listen on all ports yet is starting, and does not ask the store', async () => {
    expect((await createEarly().assess()).reasons).toEqual(['starting']);
    expect(limiter.pings).toEqual([]);
  });

  test('a service that drains says so, and does not ask the store', async () => {
    eventLoop.reason = DELAYED;
    const readiness = create();
    readiness.startDraining();

    expect((await readiness.assess()).reasons).toEqual(['draining']);
    expect(limiter.pings).toEqual([]);
  });
});

describe('the watch of the event loop', () => {
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

  test('the watch measures until it is stopped', async () => {
    expect(isEnabled).toBe(true);
    watch.stop();
    await second(LIMIT_MILLIS * 2);

    expect(isEnabled).toBe(false);
    expect(watch.reason).toBeUndefined();
  });
});

const clock = new ManualClock(0);

function isReadyWhen(assessment: Promise<Assessment>): Promise<boolean> {
  return isReadySoon({ assess: () => assessment }, clock);
}

test.each([
  [true, 'nothing is wrong', []],
  [false, 'there is a reason', ['draining']],
])('is %j if %s', async (isReady, _why, reasons) => {
  const assessment = Promise.resolve({ reasons, remarks: ['store full'] });
  expect(await isReadyWhen(assessment)).toBe(isReady);
});

test('is false after a fault', async () => {
  expect(await isReadyWhen(Promise.reject(new Error('no such command')))).toBe(false);
});

test('is false if the answer is late', async () => {
  const isReady = isReadyWhen(new Promise(() => undefined));
  await clock.advance(2000);
  expect(await isReady).toBe(false);
});
