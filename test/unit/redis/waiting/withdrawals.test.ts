import { KeyNaming } from '../../../../src/redis/key-names.js';
import { Withdrawals } from '../../../../src/redis/waiting/withdrawals.js';
import { eventLoop } from '../../../../src/common/ticks.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';

interface Call {
  readonly state: string;
  readonly ids: readonly string[];
}

const REDIS_IS_AWAY = new Error('redis is away');

let calls: Call[];
/** Whether a call fails; asked once for each. */
let fails: (call: Call) => boolean;
let log: RecordedLog;
let clock: ManualClock;
let withdrawals: Withdrawals;

beforeEach(() => {
  calls = [];
  fails = () => false;
  log = recordLog();
  clock = new ManualClock(0);
  withdrawals = new Withdrawals({
    store: {
      withdraw: (names, ids) => {
        const call = { state: names.state, ids: [...ids] };
        calls.push(call);
        return fails(call) ? Promise.reject(REDIS_IS_AWAY) : Promise.resolve();
      },
    },
    naming: new KeyNaming(''),
    clock,
    ticks: eventLoop,
    logger: log.logger,
  });
});

/** Lets what has been set in motion run out: the stub answers at once. */
async function quiet(): Promise<void> {
  for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function advance(millis: number): Promise<void> {
  await clock.advance(millis, { afterTimers: quiet });
}

test('what is added in one tick goes in one call for each key', async () => {
  withdrawals.add('k', ['a']);
  withdrawals.add('l', ['b']);
  withdrawals.add('k', ['c', 'd']);
  withdrawals.add('k', ['a']);
  expect(calls).toEqual([]);
  await quiet();
  expect(calls).toEqual([
    { state: '{k}', ids: ['a', 'c', 'd'] },
    { state: '{l}', ids: ['b'] },
  ]);
  await advance(100_000);
  expect(calls).toHaveLength(2);
  expect(log.lines).toEqual([]);
});

test('what is added later goes in a later call', async () => {
  withdrawals.add('k', ['a']);
  await quiet();
  withdrawals.add('k', ['b']);
  await quiet();
  expect(calls.map(({ ids }) => ids)).toEqual([['a'], ['b']]);
});

test('what is added while a call is on its way goes in the next one', async () => {
  let addedMeanwhile = false;
  fails = () => {
    if (!addedMeanwhile) withdrawals.add('k', ['b']);
    addedMeanwhile = true;
    return false;
  };
  withdrawals.add('k', ['a']);
  await quiet();
  await advance(0);
  expect(calls.map(({ ids }) => ids)).toEqual([['a'], ['b']]);
});

test('no more than 1000 ids go in one call', async () => {
  const ids = Array.from({ length: 2001 }, (_, i) => String(i));
  withdrawals.add('k', ids);
  await quiet();
  expect(calls.map(({ ids: some }) => some.length)).toEqual([1000, 1000, 1]);
  expect(calls.flatMap(({ ids: some }) => some)).toEqual(ids);
});

describe('a call that fails', () => {
  test('is repeated until Redis has heard it, less and less often', async () => {
    fails = () => calls.length <= 7;
    withdrawals.add('k', ['a']);
    await quiet();
    for (const [attempt, delay] of [50, 100, 200, 250, 250, 250, 250].entries()) {
      await advance(delay - 1);
      expect(calls).toHaveLength(attempt + 1);
      await advance(1);
      expect(calls).toHaveLength(attempt + 2);
    }
    expect(new Set(calls.map((call) => JSON.stringify(call))).size).toBe(1);
    await advance(100_000);
    expect(calls).toHaveLength(8);
  });

  test('is logged once, until one has succeeded', async () => {
    fails = () => calls.length <= 3;
    withdrawals.add('k', ['a']);
    await quiet();
    await advance(1000);
    expect(calls).toHaveLength(4);
    expect(log.lines).toMatchObject([
      {
        level: 'warn',
        msg: 'withdrawals will be tried again',
        err: { message: REDIS_IS_AWAY.message },
      },
    ]);
    fails = () => calls.length === 5;
    withdrawals.add('k', ['b']);
    await quiet();
    expect(log.lines).toHaveLength(2);
  });

  test('takes along what is added before it is repeated', async () => {
    fails = () => calls.length === 1;
    withdrawals.add('k', ['a']);
    await quiet();
    withdrawals.add('k', ['b']);
    await quiet();
    expect(calls).toHaveLength(1);
    await advance(50);
    expect([...calls[1]!.ids].sort()).toEqual(['a', 'b']);
  });

  test('is repeated without what other calls have done', async () => {
    fails = ({ state }) => state === '{k}' && calls.length <= 2;
    withdrawals.add('k', ['a']);
    withdrawals.add('l', ['b']);
    await quiet();
    await advance(50);
    expect(calls.map(({ state }) => state)).toEqual(['{k}', '{l}', '{k}']);
  });

  test('of many ids is repeated from the ids on that Redis has not heard', async () => {
    const ids = Array.from({ length: 2001 }, (_, i) => String(i));
    fails = () => calls.length === 2;
    withdrawals.add('k', ids);
    await quiet();
    expect(calls).toHaveLength(2);
    await advance(50);
    expect(calls.slice(2).map((call) => [call.ids[0], call.ids.length])).toEqual([
      ['1000', 1000],
      ['2000', 1],
    ]);
  });
});

describe('close', () => {
  test('waits for what is on its way', async () => {
    withdrawals.add('k', ['a']);
    await withdrawals.close();
    expect(calls).toHaveLength(1);
    expect(log.lines).toEqual([]);
  });

  test('does nothing where nothing is left', async () => {
    await withdrawals.close();
    expect(calls).toEqual([]);
    expect(log.lines).toEqual([]);
  });

  test('tries once more what is waiting for its retry', async () => {
    fails = () => calls.length === 1;
    withdrawals.add('k', ['a']);
    await quiet();
    await withdrawals.close();
    expect(calls.map(({ ids }) => ids)).toEqual([['a'], ['a']]);
    expect(log.messages).not.toContain('withdrawals left to the leases');
  });

  test('tries once more what fails while it waits', async () => {
    fails = () => calls.length === 1;
    withdrawals.add('k', ['a']);
    await withdrawals.close();
    expect(calls.map(({ ids }) => ids)).toEqual([['a'], ['a']]);
  });

  test('gives up what cannot be done, says so, and sets no timer', async () => {
    fails = () => true;
    withdrawals.add('k', ['a']);
    withdrawals.add('l', ['b']);
    await quiet();
    await withdrawals.close();
    expect(log.lines.at(-1)).toMatchObject({ msg: 'withdrawals left to the leases', keys: 2 });
    const { length } = calls;
    await advance(100_000);
    expect(calls).toHaveLength(length);
  });

  test('takes nothing more afterwards', async () => {
    await withdrawals.close();
    withdrawals.add('k', ['a']);
    await quiet();
    await advance(100_000);
    expect(calls).toEqual([]);
  });
});
