import type { CheckRequest, Decision } from '../../../src/limiter/limiter.js';
import { inPlace, RequestPlaces } from '../../../src/limiter/request-places.js';

const KEEPING: CheckRequest = { key: 'key', requestId: 'id', canWait: true, keepMillis: 1000 };
const WAITING: Decision = { outcome: 'waiting', requestId: 'id', place: undefined };
const WITHDRAWN: Decision = { outcome: 'withdrawn' };

let places: RequestPlaces;
beforeEach(() => {
  places = new RequestPlaces();
});

/** Decides a check in a place, and returns what tells that its place has ended. */
async function decide(request: CheckRequest, decision: Decision): Promise<() => void> {
  let onPlaceEnded: (() => void) | undefined;
  await inPlace(places.take(9, request)!, request, (asked) => {
    onPlaceEnded = asked.onPlaceEnded;
    return Promise.resolve(decision);
  });
  return () => onPlaceEnded?.();
}

test('requests without an id of their own take a place each', () => {
  expect(places.take(2, { key: 'key' })).toBeDefined();
  expect(places.take(2, { key: 'key' })).toBeDefined();
  expect(places.take(2, { key: 'key' })).toBeUndefined();
  expect(places.taken).toBe(2);
});

test('the checks of one request share a place, also if no other is left', () => {
  const first = places.take(1, KEEPING);
  const second = places.take(1, KEEPING);
  expect(places.take(1, { ...KEEPING, key: 'other' })).toBeUndefined();
  first?.giveBack();
  first?.giveBack();
  expect(places.taken).toBe(1);
  second?.giveBack();
  expect(places.taken).toBe(0);
});

test('a check gives its place back when it is decided', async () => {
  await decide(KEEPING, WITHDRAWN);
  expect(places.taken).toBe(0);
});

test('a check that fails gives its place back', async () => {
  const failed = inPlace(places.take(1, KEEPING)!, KEEPING, () =>
    Promise.reject(new Error('lost')),
  );
  await expect(failed).rejects.toThrow('lost');
  expect(places.taken).toBe(0);
});

test('a request that waits on keeps its place until that has ended', async () => {
  const end = await decide(KEEPING, WAITING);
  expect(places.taken).toBe(1);
  end();
  end();
  expect(places.taken).toBe(0);
});

test('a place that has ended before the decision is given back', async () => {
  const place = places.take(1, KEEPING)!;
  await inPlace(place, KEEPING, (asked) => {
    asked.onPlaceEnded?.();
    return Promise.resolve(WAITING);
  });
  expect(places.taken).toBe(0);
});

test('the end of a place is told to all who count it', async () => {
  const outer = new RequestPlaces();
  let end: (() => void) | undefined;
  await inPlace(outer.take(1, KEEPING)!, KEEPING, (request) =>
    inPlace(places.take(1, request)!, request, (asked) => {
      end = asked.onPlaceEnded;
      return Promise.resolve(WAITING);
    }),
  );
  end?.();
  expect([outer.taken, places.taken]).toEqual([0, 0]);
});
