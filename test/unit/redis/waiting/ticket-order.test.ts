import { TicketOrder } from '../../../../src/redis/waiting/ticket-order.js';

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
