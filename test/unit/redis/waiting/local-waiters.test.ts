import { setImmediate as nextTick } from 'node:timers/promises';

import { Waiter } from '../../../../src/limiter/waiter.js';
import { LocalWaiters, TicketOrder } from '../../../../src/redis/waiting/local-waiters.js';
import { systemClock } from '../../../../src/common/clock.js';
import { eventLoop } from '../../../../src/common/ticks.js';
import type { RequestStatus } from '../../../../src/limiter/limiter.js';
import { StatusCalls } from '../../../../src/redis/waiting/status-calls.js';
import { KeyNaming, type KeyNames } from '../../../../src/redis/shared/key-names.js';
import { claimIn } from '../../../support/waiting/scripted-store.js';

describe('waiters of a replica', () => {
  let waiters: LocalWaiters;
  beforeEach(() => {
    waiters = new LocalWaiters();
  });

  function ask(...requestIds: string[]): void {
    for (const requestId of requestIds) waiters.ask(new Waiter(requestId), 5);
  }

  /** Those that have a ticket, given out in this order. */
  function waiting(tickets: Readonly<Record<string, number>>): void {
    for (const [requestId, ticket] of Object.entries(tickets)) {
      ask(requestId);
      waiters.giveTicket(requestId, ticket);
    }
  }

  const takeIds = (most = 100): string[] => waiters.takeDoubted(most).map(claimIn);

  test('keep a place if any of them does, in the queue', () => {
    waiting({ a: 10 });
    waiters.ask(new Waiter('b', { keepMillis: 5 }), 5);
    expect(waiters.keepsAny).toBe(false);
    waiters.giveTicket('b', 20);
    expect(waiters.keepsAny).toBe(true);
  });

  describe('doubts', () => {
    test('about one waiter are only about it, however often', () => {
      waiting({ a: 10, b: 20, c: 30 });
      waiters.doubt('b');
      waiters.doubt('b');
      expect(takeIds(1)).toEqual(['b']);
      expect(waiters.hasDoubted).toBe(false);
    });

    test('end with their waits', () => {
      waiting({ a: 10, b: 20 });
      waiters.doubtAll();
      waiters.remove('a');
      expect(waiters.hasDoubted).toBe(true);
      waiters.remove('b');
      expect(waiters.hasDoubted).toBe(false);
    });

    test('are about no waiter whose approval came before its ticket', () => {
      ask('a');
      waiters.grant('a');
      expect(waiters.size).toBe(1);
      waiters.giveTicket('a', 10);
      waiters.doubtAll();
      expect(waiters.hasDoubted).toBe(false);
    });

    test('hold for a waiter that gets its ticket later', () => {
      ask('a');
      waiters.doubtAll();
      expect([waiters.hasDoubted, takeIds()]).toEqual([false, []]);
      waiters.giveTicket('a', 10);
      expect([waiters.hasDoubted, takeIds()]).toEqual([true, ['a']]);
    });
  });
});

const placesOf = (...tickets: number[]): { ticket: number }[] =>
  tickets.map((ticket) => ({ ticket }));

function orderOf<Place extends { ticket: number }>(places: readonly Place[]): TicketOrder<Place> {
  const order = new TicketOrder<Place>();
  for (const place of places) order.add(place);
  return order;
}

test('places are in the order of their tickets, in whatever order they come', () => {
  const order = orderOf(placesOf(20, 50, 10, 40, 30, 5));
  expect(Array.from(order, ({ ticket }) => ticket)).toEqual([5, 10, 20, 30, 40, 50]);
  expect(order.first?.ticket).toBe(5);
});

test('a place is removed, and not another one with the same ticket', () => {
  const [before, earlier, later, after] = [
    { ticket: 1, check: 'of before' },
    { ticket: 7, check: 'earlier' },
    { ticket: 7, check: 'later' },
    { ticket: 9, check: 'after' },
  ];
  for (const removed of [earlier, later]) {
    const order = orderOf([before, earlier, later, after]);
    expect(order.countBefore(removed)).toBe(removed === earlier ? 1 : 2);
    order.remove(removed);
    expect([...order]).toEqual([before, removed === earlier ? later : earlier, after]);
  }
});

test('nobody is first once all are removed, and lower tickets may come then', () => {
  const only = { ticket: 100 };
  const order = orderOf([only]);
  order.remove(only);
  expect([order.first, [...order]]).toEqual([undefined, []]);
  const lower = placesOf(1, 2);
  for (const place of lower) order.add(place);
  expect([...order]).toEqual(lower);
});

test('a request that comes back to its place costs a few looks, however many wait', () => {
  let looks = 0;
  const places = Array.from({ length: 10_000 }, (_, ticket) => ({
    get ticket() {
      looks += 1;
      return ticket;
    },
  }));
  const order = orderOf(places);
  const back = places[5000];
  if (!back) throw new Error('there are 10,000');
  looks = 0;
  order.remove(back);
  order.add(back);
  expect(looks).toBeLessThan(50);
  expect(order.countBefore(back)).toBe(5000);
});

const naming = new KeyNaming('');
const [k, l] = [naming.namesOf('k'), naming.namesOf('l')];
const MOST_IDS = 100;
const MOST_CALLS = 16;

/** Redis, whose calls are answered one by one. The position in each status is the number in the id. */
class Store {
  readonly calls: { readonly key: string; readonly ids: readonly string[] }[] = [];
  readonly answers: ((error?: Error) => void)[] = [];

  statuses({ key }: KeyNames, ids: readonly string[]): Promise<RequestStatus[]> {
    this.calls.push({ key, ids });
    return new Promise((resolve, reject) => {
      this.answers.push((error) => {
        if (error) reject(error);
        else resolve(ids.map((id) => ({ status: 'waiting', position: Number(id), waitMillis: 0 })));
      });
    });
  }
}

const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i));

test('requests of one key and one tick share a call, and each gets its own status', async () => {
  const store = new Store();
  const calls = new StatusCalls({ store, clock: systemClock, ticks: eventLoop });
  const asked = [calls.statusOf(k, '7'), calls.statusOf(l, '1'), calls.statusOf(k, '3')];
  await nextTick();
  void calls.statusOf(k, '9');
  await nextTick();
  expect(store.calls).toEqual([
    { key: 'k', ids: ['7', '3'] },
    { key: 'l', ids: ['1'] },
    { key: 'k', ids: ['9'] },
  ]);
  for (const answer of store.answers) answer();
  expect(await Promise.all(asked)).toMatchObject([
    { position: 7 },
    { position: 1 },
    { position: 3 },
  ]);
});

test('a call has a hundred requests at most, and few calls are under way at a time', async () => {
  const store = new Store();
  const calls = new StatusCalls({ store, clock: systemClock, ticks: eventLoop });
  const asked = ids((MOST_CALLS + 2) * MOST_IDS).map((id) => calls.statusOf(k, id));
  await nextTick();
  expect(store.calls.map(({ ids: ofCall }) => ofCall.length)).toEqual(
    new Array(MOST_CALLS).fill(MOST_IDS),
  );
  for (let i = 0; i < MOST_CALLS + 2; i += 1) {
    store.answers[i]!();
    await nextTick();
  }
  expect(await Promise.all(asked)).toMatchObject(
    ids(asked.length).map((id) => ({ position: Number(id) })),
  );
});

test('a call that fails fails its requests, and no others', async () => {
  const store = new Store();
  const calls = new StatusCalls({ store, clock: systemClock, ticks: eventLoop });
  const asked = [calls.statusOf(k, '1'), calls.statusOf(k, '2'), calls.statusOf(l, '3')];
  await nextTick();
  store.answers[0]!(new Error('refused'));
  store.answers[1]!();
  const outcomes = await Promise.allSettled(asked);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
});
