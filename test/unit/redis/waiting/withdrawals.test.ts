import type { FurtherLimit } from '../../../support/further-limits.js';
import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { Withdrawals } from '../../../../src/redis/waiting/withdrawals.js';
import { eventLoop } from '../../../../src/common/ticks.js';
import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';
import { until } from '../../../support/until.js';
import { keyLimits } from '../../../support/limits.js';

/** The part of a call for one key. */
interface Part {
  readonly state: string;
  readonly ids: readonly string[];
}

const REDIS_IS_AWAY = new StoreUnavailableError();
const NOT_OURS = new Error('WRONGTYPE Operation against a key holding the wrong kind of value');
const WINDOW = 1000;
const LEASE = 3000;

/** The calls, each with its keys. */
let calls: Part[][];
/** Whether a call fails. Runs once for each call. */
let fails: (call: readonly Part[]) => boolean;
/** Resolves when a call that does not fail is answered. */
let isAnswered: (call: readonly Part[]) => Promise<void>;
/** The names of the states for which Redis has a value of another type. */
let notOurs: Set<string>;
/** The names of the states that can't be asked about. */
let unavailable: Set<string>;
let waitedFor: Set<string>;
/** The further limits of all keys. */
let further: readonly FurtherLimit[] | undefined;
/** The numbers of withdrawals left to do, as reported. */
let undone: number[];
let slotOf: (name: string) => number;
let log: RecordedLog;
let clock: ManualClock;
let withdrawals: Withdrawals;

beforeEach(() => {
  calls = [];
  fails = () => false;
  isAnswered = () => Promise.resolve();
  notOurs = new Set();
  unavailable = new Set();
  waitedFor = new Set();
  further = undefined;
  undone = [];
  slotOf = () => 0;
  log = recordLog();
  clock = new ManualClock(0);
  withdrawals = new Withdrawals({
    store: {
      withdraw: async (parts) => {
        const call = parts.map(({ names, claims }) => ({
          state: names.state,
          ids: claims,
        }));
        calls.push(call);
        if (fails(call)) throw REDIS_IS_AWAY;
        await isAnswered(call);
        return call.map(({ state, ids }) => (notOurs.has(state) ? NOT_OURS : ids.length));
      },
    },
    naming: new KeyNaming(''),
    slotOf: (name) => slotOf(name),
    limitsOf: () =>
      keyLimits({ windowMillis: WINDOW, maxRequests: 1, maxRequestsInQueue: 1, further }),
    leaseMillis: LEASE,
    isAvailable: (name) => !unavailable.has(name),
    isWaitedFor: (key) => waitedFor.has(key),
    observer: {
      catchingUp: (what, count) => {
        expect(what).toBe('withdrawal');
        undone.push(count);
      },
    },
    clock,
    ticks: eventLoop,
    logger: log.logger,
  });
});

/** Resolves after all started work has ended, since the stub answers at once. */
async function quiet(): Promise<void> {
  for (let i = 0; i < 5; i += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Adds ids, and lets them be sent. */
async function add(...added: Parameters<Withdrawals['add']>): Promise<void> {
  withdrawals.add(...added);
  await quiet();
}

async function advance(millis: number): Promise<void> {
  await clock.advance(millis, { afterTimers: quiet });
}

const statesOf = (call: readonly Part[]): string[] => call.map(({ state }) => state);
const idsOf = (call: readonly Part[]): string[] => call.flatMap(({ ids }) => [...ids]);
const keys = (count: number): string[] => Array.from({ length: count }, (_, i) => `k${i}`);

test('ids added in one tick go in one call for all keys', async () => {
  withdrawals.add('k', ['a']);
  withdrawals.add('l', ['b']);
  withdrawals.add('k', ['c', 'd']);
  withdrawals.add('k', ['a']);
  expect(calls).toEqual([]);
  await quiet();
  const parts = [
    { state: '{k}', ids: ['a', 'c', 'd'] },
    { state: '{l}', ids: ['b'] },
  ];
  expect(calls).toEqual([parts]);
  await advance(100_000);
  expect(calls).toHaveLength(1);
  expect(log.lines).toEqual([]);
});

test.each(['b', 'a'])(
  '%s, added while a call for a is on its way, goes in the next',
  async (id) => {
    let addedMeanwhile = false;
    fails = () => {
      if (!addedMeanwhile) withdrawals.add('k', [id]);
      addedMeanwhile = true;
      return false;
    };
    await add('k', ['a']);
    expect(calls.map(idsOf)).toEqual([['a'], [id]]);
  },
);

test('no more than 50 keys go in one call, and no more than 1000 ids in total', async () => {
  const many = Array.from({ length: 400 }, (_, i) => String(i));
  for (const key of keys(60)) withdrawals.add(key, ['a']);
  for (const key of ['l', 'm', 'n']) withdrawals.add(key, many);
  await quiet();
  expect(calls.map((call) => [call.length, idsOf(call).length])).toEqual([
    [50, 50],
    [12, 810],
    [1, 400],
  ]);
});

describe('thousands of keys', () => {
  const COUNT = 4000;

  /** The greatest number of keys in calls under way. */
  async function mostUnderWay(): Promise<number> {
    let underWay = 0;
    let most = 0;
    isAnswered = async (call) => {
      underWay += call.length;
      most = Math.max(most, underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay -= call.length;
    };
    for (const key of keys(COUNT)) withdrawals.add(key, ['a']);
    await until(() => undone.at(-1) === 0);
    return most;
  }

  test('are withdrawn by few calls, and the next follow the replies', async () => {
    expect(await mostUnderWay()).toBe(100);
    expect(calls).toHaveLength(COUNT / 50);
    expect(new Set(calls.flatMap(statesOf)).size).toBe(COUNT);
  });

  test('in as many slots are also withdrawn 100 at a time', async () => {
    slotOf = (name) => Number(name.slice(2, -1));
    expect(await mostUnderWay()).toBe(100);
    expect(calls).toHaveLength(COUNT);
  });

  test('are not withdrawn while the store is known to be down, and all are when it is back', async () => {
    for (const key of keys(COUNT)) unavailable.add(`{${key}}`);
    for (const key of keys(COUNT)) withdrawals.add(key, ['a']);
    await quiet();
    await advance(10_000);
    expect([calls.length, undone.at(-1)]).toEqual([0, COUNT]);
    unavailable.clear();
    withdrawals.onStoreAvailable();
    await until(() => undone.at(-1) === 0);
    expect(calls).toHaveLength(COUNT / 50);
  });
});

describe('a withdrawal without success', () => {
  beforeEach(() => {
    notOurs.add('{k}');
  });

  test('is dropped after Redis was up for a window and a lease', async () => {
    await add('k', ['a'], 0);
    await advance(LEASE - 1);
    expect(undone.at(-1)).toBe(1);
    const { length } = calls;
    await advance(300);
    expect(undone.at(-1)).toBe(0);
    await advance(100_000);
    expect(calls.length - length).toBeLessThan(2);
  });

  test.each([
    ['a hold', 50_000, WINDOW],
    ['the window of a further limit', 0, 50_000],
  ])('is kept for as long as %s makes its approval count', async (_, holdMillis, windowMillis) => {
    further = [{ name: 'a', windowMillis, maximum: 1, counts: 'hits', keepsReleased: false }];
    withdrawals.add('k', ['a'], holdMillis);
    await add('k', ['b'], 0);
    await advance(49_999);
    expect(undone.at(-1)).toBe(2);
    await advance(300);
    expect(undone.at(-1)).toBe(0);
  });

  test('is kept for a day if it is unknown whether its approval is held', async () => {
    await add('k', ['a']);
    await advance(100_000);
    expect(undone.at(-1)).toBe(1);
  });

  test('is kept while others wait for the key on this replica', async () => {
    waitedFor.add('k');
    await add('k', ['a'], 0);
    await advance(100_000);
    expect(undone.at(-1)).toBe(1);
    waitedFor.clear();
    await advance(300);
    expect(undone.at(-1)).toBe(0);
  });

  test('is kept while Redis is down, since a script sent before may run at its return', async () => {
    notOurs.clear();
    await add('l', ['b']);
    withdrawals.add('k', ['a']);
    unavailable.add('{k}');
    await quiet();
    await advance(100_000);
    unavailable.clear();
    await advance(300);
    expect(calls.at(-1)).toEqual([{ state: '{k}', ids: ['a'] }]);
  });
});

test('a withdrawal that was never sent is kept, however long the event loop stood still', async () => {
  await add('l', ['b']);
  withdrawals.add('k', ['a']);
  // No microtask comes in between, so the tick that sends comes after this time.
  void clock.advance(100_000);
  await quiet();
  expect(calls.at(-1)).toEqual([{ state: '{k}', ids: ['a'] }]);
});

describe('a call that fails', () => {
  test('is logged once, until a call has succeeded', async () => {
    fails = () => calls.length <= 3;
    await add('k', ['a']);
    await advance(1000);
    expect(calls).toHaveLength(4);
    expect(log.lines).toMatchObject([
      {
        level: 'warn',
        msg: 'withdrawals failed and will be retried',
        err: { message: REDIS_IS_AWAY.message },
      },
    ]);
    fails = () => calls.length === 5;
    await add('k', ['b']);
    expect(log.lines).toHaveLength(2);
  });

  test('is repeated without the keys of other calls that succeeded', async () => {
    slotOf = (name) => (name === '{l}' ? 1 : 0);
    fails = ([first]) => first?.state === '{k}' && calls.length <= 2;
    withdrawals.add('k', ['a']);
    await add('l', ['b']);
    await advance(50);
    expect(calls.flatMap(statesOf)).toEqual(['{k}', '{l}', '{k}']);
  });

  test('for one of its keys is repeated for that key', async () => {
    notOurs.add('{k}');
    for (const key of ['k', 'l']) withdrawals.add(key, ['a']);
    await quiet();
    notOurs.clear();
    await advance(50);
    expect(calls.map(statesOf)).toEqual([['{k}', '{l}'], ['{k}']]);
  });

  test('of many ids is repeated from the first id that Redis has not got', async () => {
    const ids = Array.from({ length: 2001 }, (_, i) => String(i));
    fails = () => calls.length === 2;
    await add('k', ids);
    expect(calls).toHaveLength(2);
    await advance(50);
    expect(calls.slice(2).map((call) => [idsOf(call)[0], idsOf(call).length])).toEqual([
      ['1000', 1000],
      ['2000', 1],
    ]);
  });
});

describe('close', () => {
  test('waits for calls on their way', async () => {
    withdrawals.add('k', ['a']);
    await withdrawals.close();
    expect(calls).toHaveLength(1);
    expect(log.lines).toEqual([]);
  });

  test('tries a call once more that waits for its retry', async () => {
    fails = () => calls.length === 1;
    await add('k', ['a']);
    await withdrawals.close();
    expect(calls.map(idsOf)).toEqual([['a'], ['a']]);
    expect(log.messages).not.toContain('withdrawals given up; places end with their leases');
  });

  test('tries a call once more that fails during close', async () => {
    fails = () => calls.length === 1;
    withdrawals.add('k', ['a']);
    await withdrawals.close();
    expect(calls.map(idsOf)).toEqual([['a'], ['a']]);
  });

  test('gives up and logs ids that can not be withdrawn, and sets no timer', async () => {
    fails = () => true;
    withdrawals.add('k', ['a']);
    await add('l', ['b']);
    await withdrawals.close();
    expect(log.lines.at(-1)).toMatchObject({
      msg: 'withdrawals given up; places end with their leases',
      keys: 2,
    });
    const { length } = calls;
    await advance(100_000);
    expect(calls).toHaveLength(length);
  });

  test('makes later additions do nothing', async () => {
    await withdrawals.close();
    await add('k', ['a']);
    await advance(100_000);
    expect(calls).toEqual([]);
  });
});
