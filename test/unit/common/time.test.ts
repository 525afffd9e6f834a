import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';
import { executionAsyncResource } from 'node:async_hooks';

import { jest } from '@jest/globals';

import { systemClock } from '../../../src/common/clock.js';
import { TimeoutError, withinDeadline } from '../../../src/common/deadline.js';
import { holdEventLoop } from '../../support/hold-event-loop.js';
import { type Counts, FrequentLog } from '../../../src/common/frequent-log.js';
import { ManualClock } from '../../support/manual-clock.js';
import { keepTickShape } from '../../../src/common/ticks.js';

describe('the clock of the system', () => {
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
});

const LONG_MILLIS = 3_600_000;

const timers = (): number =>
  process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;

test('a result in time is passed on', async () => {
  await expect(withinDeadline(Promise.resolve('done'), LONG_MILLIS)).resolves.toBe('done');
});

test('a failure in time is passed on', async () => {
  const error = new Error('failed');
  await expect(withinDeadline(Promise.reject(error), LONG_MILLIS)).rejects.toBe(error);
});

test.each([
  ['is done', () => Promise.resolve()],
  ['fails', () => Promise.reject(new Error('failed'))],
])('no timer is left when the work %s', async (_what, work) => {
  const before = timers();
  const done = withinDeadline(work(), LONG_MILLIS);
  expect(timers()).toBe(before + 1);
  await done.catch(() => undefined);
  expect(timers()).toBe(before);
});

test('work that is not done in time fails', async () => {
  const never = new Promise(() => undefined);
  await expect(withinDeadline(never, 1)).rejects.toThrow(TimeoutError);
  await expect(withinDeadline(never, 1)).rejects.toThrow('no answer within 1 ms');
});

/** Resolves after `count` ticks, like a call that needs them to be sent and to be answered. */
async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick += 1) await nextTick();
}

async function standStill(millis: number): Promise<void> {
  await nextTick();
  holdEventLoop(millis);
}

test('a process that stands still before it has sent a call leaves the call time for its answer', async () => {
  const sent = standStill(1200);

  await expect(
    withinDeadline(
      sent.then(() => ticks(3)),
      1000,
    ),
  ).resolves.toBeUndefined();
});

describe('a process that stood still', () => {
  let near: Socket;
  let far: Socket;
  beforeAll(async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    near = connect((server.address() as AddressInfo).port, '127.0.0.1');
    [far] = (await once(server, 'connection')) as [Socket];
    server.close();
  });
  afterAll(() => {
    near.destroy();
    far.destroy();
  });

  test('reads the data that has arrived before time is up', async () => {
    const arrived = once(near, 'data');
    const answer = withinDeadline(arrived, 5);
    far.write('answer');
    holdEventLoop(20);

    expect(String(await answer)).toBe('answer');
  });
});

describe('a log of frequent events', () => {
  let clock: ManualClock;
  let lines: Counts<'a' | 'b' | 'c'>[];
  let log: FrequentLog<'a' | 'b' | 'c'>;
  beforeEach(() => {
    clock = new ManualClock(0);
    lines = [];
    log = new FrequentLog(clock, (counts) => lines.push(counts));
  });

  test('the first event is logged at once', () => {
    log.note('a');
    expect(lines).toEqual([{ a: 1 }]);
  });

  test('all other events within a second share a line at its end, even if no more follow', async () => {
    for (let i = 0; i < 100; i += 1) log.note('a');
    log.note('b');
    await clock.advance(999);
    expect(lines).toEqual([{ a: 1 }]);
    await clock.advance(1);
    expect(lines).toEqual([{ a: 1 }, { a: 99, b: 1 }]);
    log.note('c');
    await clock.advance(999);
    expect(lines).toHaveLength(2);
    await clock.advance(1);
    expect(lines[2]).toEqual({ c: 1 });
  });

  test('nothing is logged while nothing happens, and the next event is logged at once', async () => {
    log.note('a');
    await clock.advance(100_000);
    expect(lines).toHaveLength(1);
    log.note('a');
    expect(lines).toEqual([{ a: 1 }, { a: 1 }]);
  });

  test('close logs the events of the last second, and leaves no timer', async () => {
    log.note('a');
    log.note('a');
    log.close();
    expect(lines).toEqual([{ a: 1 }, { a: 1 }]);
    await clock.advance(100_000);
    expect(lines).toHaveLength(2);
  });
});

test('the kept object has the shape of the one that Node makes for each tick', async () => {
  const kept = await keepTickShape();
  const another = await new Promise<object>((resolve) => {
    process.nextTick(() => {
      resolve(executionAsyncResource());
    });
  });
  expect(another).not.toBe(kept);
  expect(Reflect.ownKeys(kept)).toEqual(Reflect.ownKeys(another));
});
