import { Waiter } from '../../../../src/limiter/waiter.js';
import { Places } from '../../../../src/redis/waiting/places.js';

let places: Places;
beforeEach(() => {
  places = new Places();
});

function ask(...requestIds: string[]): void {
  for (const requestId of requestIds) places.ask(new Waiter(requestId), 5);
}

/** Places that have a ticket, given out in this order. */
function waiting(tickets: Readonly<Record<string, number>>): void {
  for (const [requestId, ticket] of Object.entries(tickets)) {
    ask(requestId);
    places.giveTicket(requestId, ticket);
  }
}

const takeIds = (most = 100): string[] => places.takeDoubted(most).map((t) => t.claim);

test('a place asks first, then has a ticket, then is gone', () => {
  ask('a');
  expect(places.asking('a')).toMatchObject({ askedAt: 5, isDoubted: false });
  expect([places.size, places.hasTicket('a'), places.first?.ticket]).toEqual([1, false, undefined]);
  places.giveTicket('a', 7);
  expect(places.asking('a')).toBeUndefined();
  expect([places.size, places.hasTicket('a'), places.first?.ticket]).toEqual([1, true, 7]);
  expect(places.remove('a')?.waiter.requestId).toBe('a');
  expect(places.remove('a')).toBeUndefined();
  expect([places.size, places.hasTicket('a'), places.first?.ticket]).toEqual([0, false, undefined]);
});

test('a removed place gets no ticket', () => {
  ask('a');
  places.remove('a');
  places.giveTicket('a', 7);
  expect(places.size).toBe(0);
});

test('the waiters include all places, and the ids only places with a ticket', () => {
  waiting({ b: 2 });
  ask('a');
  expect([...places.waiters()].map(({ requestId }) => requestId)).toEqual(['a', 'b']);
  expect(places.ticketedClaims()).toEqual(['b']);
});

test('the lowest ticket is known, in whatever order tickets come', () => {
  waiting({ b: 20, c: 30, a: 10, d: 25 });
  expect(places.first?.ticket).toBe(10);
  places.remove('a');
  expect(places.first?.ticket).toBe(20);
});

test('a lower ticket that comes after a place was removed has its own place', () => {
  waiting({ a: 10, b: 40, c: 30 });
  places.remove('b');
  waiting({ d: 20 });
  expect(places.ticketedClaims()).toEqual(['a', 'd', 'c']);
});

test('lower tickets are possible when none is left, since a new primary may count from less', () => {
  waiting({ a: 100 });
  places.remove('a');
  waiting({ b: 1, c: 2 });
  expect(places.ticketedClaims()).toEqual(['b', 'c']);
});

describe('doubts', () => {
  test('about all places are taken in the order of tickets, a given number at a time', () => {
    waiting({ b: 20, c: 30, a: 10 });
    expect([places.hasDoubted, takeIds()]).toEqual([false, []]);
    places.doubtAll();
    expect(places.takeDoubted(2)).toEqual([
      { claim: 'a', ticket: 10, hits: 1 },
      { claim: 'b', ticket: 20, hits: 1 },
    ]);
    expect(places.hasDoubted).toBe(true);
    expect(takeIds()).toEqual(['c']);
    expect([places.hasDoubted, takeIds()]).toEqual([false, []]);
  });

  test('about one place are only about it, however often', () => {
    waiting({ a: 10, b: 20, c: 30 });
    places.doubt('b');
    places.doubt('b');
    expect(takeIds(1)).toEqual(['b']);
    expect(places.hasDoubted).toBe(false);
  });

  test('that come again are taken again', () => {
    waiting({ a: 10, b: 20 });
    places.doubtAll();
    takeIds(1);
    places.doubtAll();
    expect(takeIds()).toEqual(['a', 'b']);
  });

  test('end with their places', () => {
    waiting({ a: 10, b: 20 });
    places.doubtAll();
    places.remove('a');
    expect(places.hasDoubted).toBe(true);
    places.remove('b');
    expect(places.hasDoubted).toBe(false);
  });

  test('hold for a place that gets its ticket later', () => {
    ask('a');
    places.doubtAll();
    expect([places.hasDoubted, takeIds()]).toEqual([false, []]);
    places.giveTicket('a', 10);
    expect([places.hasDoubted, takeIds()]).toEqual([true, ['a']]);
  });
});
