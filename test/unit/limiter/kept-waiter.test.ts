import { CallerPresence } from '../../../src/limiter/caller-presence.js';
import { Waiter } from '../../../src/limiter/waiter.js';
import { ManualClock } from '../../support/manual-clock.js';
import { quotaOf } from '../../support/quota.js';

const PLACE = { position: 3, waitMillis: 700 };

let clock: ManualClock;
let events: string[];
const note = (event: string) => () => void events.push(event);
beforeEach(() => {
  clock = new ManualClock(0);
  events = [];
});

function keptWaiter(terms: ConstructorParameters<typeof Waiter>[1] = {}): Waiter {
  return new Waiter('id', { keepMillis: 1000, onPlaceEnded: note('ended'), ...terms }, 1);
}

test('a kept waiter goes on to wait when its check ends, for the time of its place', async () => {
  const waiter = keptWaiter();
  expect(waiter.keep(PLACE, clock, note('kept long enough'))).toBe(true);
  expect(await waiter.decision).toEqual({ outcome: 'waiting', requestId: 'id', place: PLACE });
  await clock.advance(999);
  expect(events).toEqual([]);
  await clock.advance(1);
  expect(events).toEqual(['kept long enough']);
});

test('a kept waiter that is decided is not kept', async () => {
  const waiter = keptWaiter();
  waiter.approve();
  expect(waiter.keep(PLACE, clock, note('kept long enough'))).toBe(false);
  await clock.advance(1000);
  expect(events).toEqual([]);
});

test('the end of a place ends its timers, and is told', async () => {
  const waiter = keptWaiter({ maxWaitMillis: 500 });
  waiter.onceExpired(clock, note('expired'));
  waiter.keep(undefined, clock, note('kept long enough'));
  waiter.endPlace();
  await clock.advance(1000);
  expect(events).toEqual(['ended']);
});

test('a place that has ended is not kept', async () => {
  const waiter = keptWaiter();
  waiter.endPlace();
  expect(waiter.keep(undefined, clock, note('kept long enough'))).toBe(true);
  await clock.advance(1000);
  expect(events).toEqual(['ended']);
});

test('the longest wait goes on after the check, less what is over of it', async () => {
  const waiter = keptWaiter({ maxWaitMillis: 1500 });
  waiter.onceExpired(clock, note('expired'), 600);
  waiter.keep(undefined, clock, note('kept long enough'));
  await clock.advance(899);
  expect(events).toEqual([]);
  await clock.advance(1);
  expect(events).toEqual(['expired']);
  expect(waiter.expire(quotaOf(1))).toBe(false);
});

test('the disconnect of its caller is told once', () => {
  const waiter = keptWaiter();
  const caller = new CallerPresence();
  waiter.keepOnDisconnect(caller, note('disconnected'));
  caller.disconnect();
  expect(events).toEqual(['disconnected']);
});

test('the disconnect of the caller of a decided check is not told', () => {
  const waiter = keptWaiter();
  const caller = new CallerPresence();
  waiter.keepOnDisconnect(caller, note('disconnected'));
  waiter.approve();
  caller.disconnect();
  expect(events).toEqual([]);
});

test('an answer is due after its time, and at once if that is 0', async () => {
  keptWaiter({ answerMillis: 0 }).onceAnswerDue(clock, note('at once'));
  expect(events).toEqual(['at once']);
  const waiter = keptWaiter({ answerMillis: 300 });
  waiter.onceAnswerDue(clock, note('due'));
  await clock.advance(300);
  expect(events).toEqual(['at once', 'due']);
});

test('no answer is due for a decided check', async () => {
  const waiter = keptWaiter({ answerMillis: 300 });
  waiter.onceAnswerDue(clock, note('due'));
  waiter.approve();
  await clock.advance(300);
  expect(events).toEqual([]);
});
