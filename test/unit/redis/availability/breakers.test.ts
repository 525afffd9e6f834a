import { setImmediate as nextTick } from 'node:timers/promises';

import { Breakers } from '../../../../src/redis/availability/breakers.js';
import { TimeoutError } from '../../../../src/common/deadline.js';
import { FakeStore } from '../../../support/fake-store.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';
import { FAILURES } from '../../../support/store-failures.js';
import { until } from '../../../support/until.js';
import { unobserved } from '../../../support/unguarded.js';

let store: FakeStore;
let clock: ManualClock;
let log: RecordedLog;
let timeoutMillis: number;
/** The calls of listeners and observer, in order. */
let told: unknown[];
let breakers: Breakers;
beforeEach(() => {
  store = new FakeStore();
  clock = new ManualClock(0);
  log = recordLog();
  timeoutMillis = 60_000;
  told = [];
  breakers = create();
});

function create(): Breakers {
  return new Breakers({
    connections: store.connections,
    timeoutMillis,
    clock,
    logger: log.logger,
    observer: { ...unobserved, breakersOpen: (count) => told.push(count) },
  });
}

function open(name: string, cause: unknown = FAILURES.refused): void {
  for (let i = 0; i < 3; i += 1) breakers.of(name).failed(name, cause);
}

async function advance(millis: number): Promise<void> {
  await clock.advance(millis, { afterTimers: () => nextTick() });
}

test('there is one breaker for each shard', () => {
  expect(breakers.of('a:1')).toBe(breakers.of('a:2'));
  expect(breakers.of('a:1')).not.toBe(breakers.of('b:1'));
});

test('each change is reported with the number of shards that are down, and logged once', async () => {
  breakers.onChange((isOpen) => told.push(isOpen));
  open('a:1');
  open('a:1');
  open('b:1');
  expect(told).toEqual([1, true, 2, true]);
  await advance(50);
  expect(told).toEqual([1, true, 2, true, 1, false, 0, false]);
  expect(log.lines).toMatchObject([
    {
      level: 'warn',
      msg: 'store is down; not asked until it is up again',
      shard: 'a',
      reason: FAILURES.refused.message,
    },
    { level: 'warn', msg: 'store is down; not asked until it is up again', shard: 'b' },
    { level: 'info', msg: 'store is up again', shard: 'a' },
    { level: 'info', msg: 'store is up again', shard: 'b' },
  ]);
});

test('all listeners are called, and see the breaker in its new state', async () => {
  for (let i = 0; i < 2; i += 1) {
    breakers.onChange((isOpen) => told.push([isOpen, breakers.of('a:1').isOpen]));
  }
  open('a:1');
  await advance(50);
  expect(told).toEqual([1, [true, true], [true, true], 0, [false, false], [false, false]]);
});

test('a probe writes to a name beside one that the shard holds', async () => {
  open('a:{key}');
  await advance(50);
  expect(store.probes).toEqual([['setrange', 'a:{key}:probe', 0, '']]);
});

test('a shard that refuses a write is not back', async () => {
  store.answerProbe = () => Promise.reject(FAILURES.refused);
  open('a:1');
  await advance(50);
  expect(breakers.of('a:1').isOpen).toBe(true);
  store.answerProbe = () => Promise.resolve(0);
  await advance(100);
  expect(breakers.of('a:1').isOpen).toBe(false);
});

test('a shard without room for new keys is back', async () => {
  store.answerProbe = () => Promise.reject(FAILURES.full);
  expect(await breakers.probe('a:1')).toBe('full');
  open('a:1');
  await advance(50);
  expect(breakers.of('a:1').isOpen).toBe(false);
});

test('a shard that does not answer in time is not back', async () => {
  timeoutMillis = 1;
  breakers = create();
  store.answerProbe = () => new Promise(() => undefined);
  await expect(breakers.probe('a:1')).rejects.toThrow(TimeoutError);
});

test('only shards that are down are probed when Redis can be reached again', async () => {
  breakers.of('b:1').failed('b:1', FAILURES.unknown);
  open('a:1');
  store.becomeReady();
  await nextTick();
  expect(store.probes).toEqual([['setrange', 'a:1:probe', 0, '']]);
  expect(breakers.of('a:1').isOpen).toBe(false);
});

test('the connection is examined again after each probe without a reply, with one probe at a time', async () => {
  timeoutMillis = 1;
  breakers = create();
  let answer!: (reply: number) => void;
  store.answerProbe = () => new Promise((resolve) => (answer = resolve));
  open('a:1', new TimeoutError(500));
  for (const looks of [2, 3, 4]) {
    await advance(250);
    await until(() => store.suspected.length === looks);
  }
  expect(store.probes).toHaveLength(1);
  store.answerProbe = () => Promise.resolve(0);
  answer(0);
  await advance(250);
  await until(() => !breakers.of('a:1').isOpen);
});

test.each(['a:1', 'b:1'])('calls of %s that fail after dispose open no breaker', (name) => {
  open('a:1');
  breakers.dispose();
  open(name);
  expect(breakers.of(name).isOpen).toBe(false);
});

test('a connection is not examined again while it is examined', async () => {
  const suspected: string[] = [];
  store.connections.renewIfDead = (shard) => {
    suspected.push(shard);
    return new Promise(() => undefined);
  };
  store.answerProbe = () => new Promise(() => undefined);
  timeoutMillis = 1;
  breakers = create();
  await expect(breakers.probe('a:1')).rejects.toThrow(TimeoutError);
  await expect(breakers.probe('a:1')).rejects.toThrow(TimeoutError);
  await expect(breakers.probe('b:1')).rejects.toThrow(TimeoutError);
  expect(suspected).toEqual(['a', 'b']);
});
