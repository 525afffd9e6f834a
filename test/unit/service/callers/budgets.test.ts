import {
  BODY_BYTES,
  BodyBudget,
  type BodyMemory,
} from '../../../../src/service/callers/body-budget.js';
import { CallerPlaces } from '../../../../src/service/callers/bearer-access.js';
import type { Caller } from '../../../../src/service/request-context.js';

describe('bodies', () => {
  const NO_ROOM = 'no room for another body';

  let budget: BodyBudget;
  beforeEach(() => {
    budget = new BodyBudget();
  });

  /** Takes bytes for one body. */
  function take(caller: string, bytes: number): BodyMemory {
    const memory = budget.memoryFor(caller);
    memory.take(bytes);
    return memory;
  }

  test('a caller has 16 MiB for all its bodies together', () => {
    const first = take('one', BODY_BYTES.caller - 1);
    take('one', 1);
    expect(() => take('one', 1)).toThrow(NO_ROOM);
    first.giveBack();

    take('one', BODY_BYTES.caller - 1);
  });

  test('all callers have 64 MiB together', () => {
    const memories = ['a', 'b', 'c', 'd'].map((caller) => take(caller, BODY_BYTES.all / 4));
    expect(() => take('e', 1)).toThrow(NO_ROOM);
    memories[0]!.giveBack();

    take('e', BODY_BYTES.all / 4);
  });

  test('a body that is rejected takes nothing, and keeps what it had until it gives that back', () => {
    const memory = take('one', 1);
    expect(() => memory.take(BODY_BYTES.caller)).toThrow(NO_ROOM);
    take('one', BODY_BYTES.caller - 1);
    expect(() => take('one', 1)).toThrow(NO_ROOM);
    memory.giveBack();
    memory.giveBack();

    take('one', 1);
  });
});

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

test('places outlive a change of the tokens, and a smaller share', () => {
  const places = new CallerPlaces(4);
  const taken = [places.take(caller('a'), KEY), places.take(caller('a'), KEY)];
  expect(places.take(caller('a', 0.25), KEY)).toBeUndefined();
  taken[0]?.();
  expect(places.take(caller('a', 0.25), KEY)).toBeUndefined();
  taken[1]?.();

  expect(places.take(caller('a', 0.25), KEY)).toBeDefined();
});

test('the checks of one request of a caller are in one place', () => {
  const places = new CallerPlaces(2);
  const request = { key: 'key', requestId: 'id' };
  const earlier = places.take(caller('a'), request);
  const later = places.take(caller('a'), request);
  expect(later).toBeDefined();
  expect(places.take(caller('b'), request)).toBeDefined();
  earlier?.();
  earlier?.();
  expect(places.take(caller('a'), { ...request, key: 'other' })).toBeUndefined();
  later?.();

  expect(places.take(caller('a'), KEY)).toBeDefined();
});
