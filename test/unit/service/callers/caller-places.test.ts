import { CallerPlaces } from '../../../../src/service/callers/caller-places.js';
import type { Caller } from '../../../../src/service/callers/caller.js';

function caller(name: string, waitingShare?: number): Caller {
  return { name, scopes: ['check'], waitingShare, mayUse: () => true, mayUseAll: true };
}

const KEY = { key: 'key' };

/** The number of places that a caller can take in a row. */
function placesFor(places: CallerPlaces, who: Caller): number {
  let taken = 0;
  while (taken < 1000 && places.take(who, KEY)) taken += 1;
  return taken;
}

test.each([
  ['half of all, rounded up', 5, undefined, undefined, 3],
  ['the number in the setting', 5, 1, undefined, 1],
  ['none, if the setting is 0', 5, 0, undefined, 0],
  ['its share', 100, 1, 0.07, 7],
  ['its share, to the nearest place', 10, undefined, 0.16, 2],
  ['all, if its share is 1', 7, 1, 1, 7],
  ['one, if its share is less than one place', 10, undefined, 0.001, 1],
])('the places of a caller are %s', (_what, maxWaiters, maxPerCaller, share, expected) => {
  const places = new CallerPlaces(maxWaiters, maxPerCaller);

  expect(placesFor(places, caller('a', share))).toBe(expected);
});

test('callers take no places from each other', () => {
  const places = new CallerPlaces(10);
  expect(placesFor(places, caller('a'))).toBe(5);

  expect(placesFor(places, caller('b'))).toBe(5);
});

test('a place that is given back can be taken again', () => {
  const places = new CallerPlaces(4);
  const place = places.take(caller('a'), KEY);
  placesFor(places, caller('a'));
  place?.giveBack();
  place?.giveBack();

  expect(placesFor(places, caller('a'))).toBe(1);
});

test('places outlive a change of the tokens, and a smaller share', () => {
  const places = new CallerPlaces(4);
  const taken = [places.take(caller('a'), KEY), places.take(caller('a'), KEY)];
  expect(places.take(caller('a', 0.25), KEY)).toBeUndefined();
  taken[0]?.giveBack();
  expect(places.take(caller('a', 0.25), KEY)).toBeUndefined();
  taken[1]?.giveBack();

  expect(places.take(caller('a', 0.25), KEY)).toBeDefined();
});

test('the checks of one request of a caller are in one place', () => {
  const places = new CallerPlaces(2);
  const request = { key: 'key', requestId: 'id' };
  const earlier = places.take(caller('a'), request);
  const later = places.take(caller('a'), request);
  expect(later).toBeDefined();
  expect(places.take(caller('b'), request)).toBeDefined();
  earlier?.giveBack();
  earlier?.giveBack();
  expect(places.take(caller('a'), { ...request, key: 'other' })).toBeUndefined();
  later?.giveBack();

  expect(places.take(caller('a'), KEY)).toBeDefined();
});
