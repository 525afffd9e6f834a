import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import { Waiter } from '../../../../src/limiter/waiter.js';
import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { Lease } from '../../../../src/redis/waiting/lease.js';
import { Places } from '../../../../src/redis/waiting/places.js';
import { SettleCalls } from '../../../../src/redis/waiting/settle-calls.js';
import type { KnownWindow, SettleReply } from '../../../../src/redis/scripts/settle-codec.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';
import { ScriptedStore } from '../../../support/waiting/scripted-store.js';

const LEASE = 3000;
const LOOK_AGAIN = 40_000;

let store: ScriptedStore;
let clock: ManualClock;
let log: RecordedLog;
let places: Places;
let withdrawn: (readonly string[])[];
let lease: Lease;
let calls: SettleCalls;
beforeEach(() => {
  store = new ScriptedStore();
  clock = new ManualClock(0);
  log = recordLog('debug');
  places = new Places();
  withdrawn = [];
  lease = new Lease(LEASE, LOOK_AGAIN);
  calls = new SettleCalls(places, {
    names: new KeyNaming('').namesOf('k'),
    store,
    clock,
    logger: log.logger,
    lease,
    withdraw: (requestIds) => withdrawn.push([...requestIds]),
  });
  lease.settled(0);
  for (const ticket of [3, 1, 2]) {
    places.ask(new Waiter(`w${ticket}`), 0);
    places.giveTicket(`w${ticket}`, ticket);
  }
});

/** A call that is answered at once. */
const KNOWN: KnownWindow = { millisLeft: 700, limits: '1000:1:5' };

async function settle(): Promise<SettleReply | undefined> {
  const reply = calls.settle(KNOWN);
  await store.last.answer();
  return reply;
}

test('a call says what is known, and asks only about doubted waiters', async () => {
  const reply = calls.settle(KNOWN);
  expect(store.last).toMatchObject({ state: '{k}', known: KNOWN, ids: [] });
  await store.last.answer({ waiting: 3 });
  expect(await reply).toMatchObject({ waiting: 3 });
});

test('calls ask about doubted waiters in the order of their tickets, 500 at a time', async () => {
  for (let ticket = 1001; ticket <= 1600; ticket += 1) {
    places.ask(new Waiter(`w${ticket}`), 0);
    places.giveTicket(`w${ticket}`, ticket);
  }
  places.doubtAll();
  await settle();
  await settle();
  await settle();
  expect(store.calls.map(({ ids }) => ids.length)).toEqual([500, 103, 0]);
  const tickets = store.calls.flatMap(({ askedAbout }) => askedAbout.map(({ ticket }) => ticket));
  expect(tickets).toEqual([...tickets].sort((a, b) => a - b));
  expect(store.calls[0]!.ids.slice(0, 3)).toEqual(['w1', 'w2', 'w3']);
});

describe('a call that fails', () => {
  test('leaves all waiters doubted, also the waiters that it asked about', async () => {
    places.doubt('w1');
    const failed = calls.settle(KNOWN);
    await store.last.fail();
    expect(await failed).toBeUndefined();
    await settle();
    expect(store.last.ids).toEqual(['w1', 'w2', 'w3']);
  });

  test.each([
    ['warn', 'a fault', new Error('a fault')],
    ['debug', 'a store that is down', new StoreUnavailableError()],
  ])('is logged only once in a row, at level %s: %s', async (level, _what, error) => {
    for (let i = 0; i < 3; i += 1) {
      void calls.settle(KNOWN);
      await store.last.fail(error);
    }
    expect(log.lines).toMatchObject([
      { level, state: '{k}', msg: 'settle failed; its waiters keep waiting' },
    ]);
  });
});

describe('the lease', () => {
  test('is renewed by a call, from when it was sent', async () => {
    await clock.advance(500);
    const reply = calls.settle(KNOWN);
    await clock.advance(400);
    await store.last.answer();
    await reply;
    expect(lease.renewalDueAt).toBe(500 + LEASE / 3);
  });

  test('is not renewed by a call that fails', async () => {
    await clock.advance(500);
    void calls.settle(KNOWN);
    await store.last.fail();
    expect(lease.renewalDueAt).toBe(LEASE / 3);
  });

  test('that lapsed before a call makes the call ask about all waiters once', async () => {
    await clock.advance(LEASE);
    await settle();
    expect(store.last.ids).toEqual(['w1', 'w2', 'w3']);
    expect(places.hasDoubted).toBe(false);
  });

  test('that may have lapsed while a call was on its way leaves all waiters doubted', async () => {
    await clock.advance(LEASE - 1);
    const reply = calls.settle(KNOWN);
    await clock.advance(1);
    await store.last.answer();
    await reply;
    expect(store.last.ids).toEqual([]);
    expect(places.hasDoubted).toBe(true);
  });
});

describe('withdrawals', () => {
  test('go at once if no call is under way', () => {
    calls.withdraw(['a']);
    calls.withdraw([]);
    expect(withdrawn).toEqual([['a']]);
  });

  test.each(['answer', 'fail'] as const)(
    'come after a call under way, which may put a waiter back: %s',
    async (end) => {
      void calls.settle(KNOWN);
      calls.withdraw(['a']);
      calls.withdraw(['b']);
      expect(withdrawn).toEqual([]);
      await store.last[end]();
      expect(withdrawn).toEqual([['a', 'b']]);
      calls.withdraw(['c']);
      expect(withdrawn).toEqual([['a', 'b'], ['c']]);
      await settle();
      expect(withdrawn).toHaveLength(2);
    },
  );
});

test('withdrawals after a failed call go once more when it has ended, since it may put a waiter back later', async () => {
  let end!: (value?: unknown) => void;
  const ended = new Promise((resolve) => (end = resolve));
  void calls.settle(KNOWN);
  calls.withdraw(['a']);
  await store.last.fail(new StoreUnavailableError({ mayHaveRun: true, ended }));
  calls.withdraw(['b']);
  expect(withdrawn).toEqual([['a'], ['b']]);
  end();
  await new Promise((resolve) => setImmediate(resolve));
  expect(withdrawn.slice(2)).toEqual([['a'], ['b']]);
  calls.withdraw(['c']);
  await new Promise((resolve) => setImmediate(resolve));
  expect(withdrawn.slice(4)).toEqual([['c']]);
});

test('a renewal asks for a settle some time after the last successful one', async () => {
  const renewUntil = async (end: number): Promise<boolean> => {
    while (clock.now() + LEASE / 3 < end) {
      await clock.advance(LEASE / 3);
      expect(lease.renewed(clock.now(), clock.now())).toBe(false);
    }
    await clock.advance(end - clock.now());
    return lease.renewed(clock.now(), clock.now());
  };
  await clock.advance(500);
  await settle();
  expect(await renewUntil(500 + LOOK_AGAIN)).toBe(true);
  void calls.settle(KNOWN);
  await store.last.fail();
  expect(lease.renewed(clock.now(), clock.now())).toBe(true);
  await settle();
  expect(lease.renewed(clock.now(), clock.now())).toBe(false);
});
