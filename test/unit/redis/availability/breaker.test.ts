import { setImmediate as nextTick } from 'node:timers/promises';

import { Breaker } from '../../../../src/redis/availability/breaker.js';
import { ManualClock } from '../../../support/manual-clock.js';

const cause = (number: number): Error => new Error(`failure ${number}`);

/** The probes so far: the name that each asked about, and the test's means to answer it. */
interface Probe {
  readonly name: string;
  readonly answer: () => void;
  readonly fail: () => void;
}

let clock: ManualClock;
let probes: Probe[];
/** Makes every probe fail without the test's help. */
let failProbes: boolean;
let events: unknown[];
let breaker: Breaker;
beforeEach(() => {
  clock = new ManualClock(0);
  probes = [];
  failProbes = false;
  events = [];
  breaker = new Breaker({
    clock,
    probe: (name) =>
      new Promise((resolve, reject) => {
        const fail = (): void => {
          reject(new Error('still down'));
        };
        probes.push({ name, answer: () => resolve(0), fail });
        if (failProbes) fail();
      }),
    onOpen: (error) => events.push(['open', error, breaker.isOpen]),
    onClose: () => events.push(['close', breaker.isOpen]),
  });
});

const OPENED = ['open', cause(3), true];
const CLOSED = ['close', false];

function fail(...numbers: number[]): void {
  for (const number of numbers) breaker.failed(`name ${number}`, cause(number));
}

async function advance(millis: number): Promise<void> {
  await clock.advance(millis, { afterTimers: () => nextTick() });
}

async function answerProbe(index: number): Promise<void> {
  probes[index]!.answer();
  await nextTick();
}

async function failProbe(index: number): Promise<void> {
  probes[index]!.fail();
  await nextTick();
}

describe('a closed breaker', () => {
  test('opens at the third failure in a row, and reports its cause', () => {
    fail(1, 2);
    expect([breaker.isOpen, events]).toEqual([false, []]);
    fail(3);
    expect([breaker.isOpen, events]).toEqual([true, [OPENED]]);
  });

  test('opens without a failure if the shard is known to be down, once, and probes', async () => {
    breaker.open('name 3', cause(3));
    breaker.open('name 4', cause(4));
    expect([breaker.isOpen, events]).toEqual([true, [OPENED]]);
    await advance(50);
    expect(probes.map(({ name }) => name)).toEqual(['name 3']);
    await answerProbe(0);
    expect(events).toEqual([OPENED, CLOSED]);
  });

  test('stays closed if a success comes between failures', () => {
    fail(1, 2);
    breaker.succeeded();
    fail(1, 2);
    expect([breaker.isOpen, events]).toEqual([false, []]);
    fail(3);
    expect(breaker.isOpen).toBe(true);
  });

  test('sends no probe, even when it is told to', async () => {
    fail(1, 2);
    breaker.probeNow();
    await advance(100_000);
    expect(probes).toEqual([]);
  });
});

describe('an open breaker', () => {
  beforeEach(() => {
    fail(1, 2, 3);
  });

  test('does not open again', () => {
    fail(4, 5, 6);
    expect(events).toEqual([OPENED]);
  });

  test('does not close after a late success', () => {
    breaker.succeeded();
    expect(breaker.isOpen).toBe(true);
  });

  test('probes with the name of the call that opened it', async () => {
    fail(4);
    failProbes = true;
    await advance(1000);
    expect(new Set(probes.map(({ name }) => name))).toEqual(new Set(['name 3']));
  });

  test('probes less and less often, and never while a probe is under way', async () => {
    for (const [asked, delay] of [50, 100, 200, 250, 250, 250].entries()) {
      await advance(delay - 1);
      expect(probes).toHaveLength(asked);
      await advance(1);
      expect(probes).toHaveLength(asked + 1);
      await advance(1000);
      breaker.probeNow();
      expect(probes).toHaveLength(asked + 1);
      await failProbe(asked);
    }
    expect([breaker.isOpen, events]).toEqual([true, [OPENED]]);
  });

  test('closes when a probe is answered, and sends no more', async () => {
    await advance(50);
    expect(breaker.isOpen).toBe(true);
    await answerProbe(0);
    expect([breaker.isOpen, events]).toEqual([false, [OPENED, CLOSED]]);
    await advance(100_000);
    expect(probes).toHaveLength(1);
  });

  test('needs three failures to open again, and then probes from the start', async () => {
    failProbes = true;
    await advance(1000);
    failProbes = false;
    breaker.probeNow();
    await answerProbe(probes.length - 1);
    const before = probes.length;

    fail(1, 2);
    expect(breaker.isOpen).toBe(false);
    fail(3);
    expect(events).toEqual([OPENED, CLOSED, OPENED]);
    await advance(49);
    expect(probes).toHaveLength(before);
    await advance(1);
    expect(probes).toHaveLength(before + 1);
  });

  test('probes at once when it is told that the shard may be back', async () => {
    breaker.probeNow();
    expect(probes).toHaveLength(1);
    await answerProbe(0);
    expect([breaker.isOpen, events]).toEqual([false, [OPENED, CLOSED]]);
    await advance(100_000);
    expect(probes).toHaveLength(1);
  });

  test('has one timer, even after it was told to probe', async () => {
    breaker.probeNow();
    await failProbe(0);
    await advance(99);
    expect(probes).toHaveLength(1);
    await advance(1);
    expect(probes).toHaveLength(2);
  });

  test('that is ended sends no more probes', async () => {
    breaker.dispose();
    expect(breaker.isOpen).toBe(false);
    breaker.probeNow();
    await advance(100_000);
    expect(probes).toEqual([]);
  });

  test.each([
    ['answered', answerProbe],
    ['failed', failProbe],
  ])('that is ended ignores a probe that is %s', async (_what, end) => {
    await advance(50);
    breaker.dispose();
    await end(0);
    await advance(100_000);
    expect(probes).toHaveLength(1);
    expect(events).toEqual([OPENED]);
  });
});
