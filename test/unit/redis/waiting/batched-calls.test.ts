import { setImmediate as nextTick } from 'node:timers/promises';

import { eventLoop } from '../../../../src/common/ticks.js';
import {
  BatchedCalls,
  type BatchedCallsParts,
} from '../../../../src/redis/waiting/batched-calls.js';
import { ManualClock } from '../../../support/manual-clock.js';

interface Item {
  readonly name: string;
  readonly slot: number;
  readonly size: number;
}

/** A call that the test ends. */
interface Call {
  readonly names: readonly string[];
  end(): Promise<void>;
  /** Ends it, and all its items have failed. */
  fail(): Promise<void>;
}

const FAILURE = new Error('refused');

let clock: ManualClock;
let calls: Call[];
let undone: number[];
let failures: unknown[];
beforeEach(() => {
  clock = new ManualClock(0);
  calls = [];
  undone = [];
  failures = [];
});

function batched(parts: Partial<BatchedCallsParts<Item>> = {}): BatchedCalls<Item> {
  const all = new BatchedCalls<Item>({
    clock,
    groupOf: ({ slot }) => slot,
    mostPerCall: 10,
    mostUnderWay: 2,
    call: (items) =>
      new Promise((resolve) => {
        const end = (): Promise<void> => {
          resolve();
          return nextTick();
        };
        calls.push({
          names: items.map(({ name }) => name),
          end,
          fail: () => {
            all.addLater(items, FAILURE);
            return end();
          },
        });
      }),
    onFirstFailure: (failure) => failures.push(failure),
    onUndone: (count) => undone.push(count),
    ...parts,
  });
  return all;
}

const item = (name: string, slot = 0, size = 1): Item => ({ name, slot, size });
const items = (count: number): Item[] => Array.from({ length: count }, (_, i) => item(`i${i}`));
const sent = (): (readonly string[])[] => calls.map(({ names }) => names);

test('items of one tick and one group share a call', async () => {
  const all = batched({ ticks: eventLoop });
  all.add([item('a'), item('b', 1)]);
  all.add([item('c')]);
  expect(sent()).toEqual([]);
  await nextTick();
  expect(sent()).toEqual([['a', 'c'], ['b']]);
  // Also if a call ends in their tick.
  all.add([item('d')]);
  const ended = calls[0]!.end();
  await new Promise<void>((resolve) => process.nextTick(resolve));
  all.add([item('e')]);
  await ended;
  expect(sent().slice(2)).toEqual([['d', 'e']]);
});

test('without ticks items are sent at once, and each alone if they have no groups', () => {
  const alone: string[] = [];
  const all = new BatchedCalls<Item>({
    clock,
    mostUnderWay: 2,
    call: (ofCall) => {
      alone.push(ofCall.map(({ name }) => name).join());
      return Promise.resolve();
    },
  });
  all.add([item('a'), item('b')]);
  expect(alone).toEqual(['a', 'b']);
});

test('a call takes no more than its bound, and the next ones take what came first', async () => {
  batched({ mostPerCall: 2, mostUnderWay: 1 }).add([
    ...[item('a'), item('b'), item('c')],
    ...[item('d', 1), item('e')],
  ]);
  for (let i = 0; i < 3; i += 1) await calls[i]!.end();
  expect(sent()).toEqual([['a', 'b'], ['c', 'e'], ['d']]);
});

test('heavy items fill a call sooner', () => {
  batched({ sizeOf: ({ size }) => size }).add([
    ...[item('a', 0, 4), item('b', 0, 6)],
    ...[item('c', 0, 1), item('d', 0, 9)],
  ]);
  expect(sent()).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
});

test('few calls are under way, and items that are added meanwhile share the next', async () => {
  const all = batched();
  for (const name of ['a', 'b', 'c', 'd']) all.add([item(name)]);
  expect(sent()).toEqual([['a'], ['b']]);
  await calls[0]!.end();
  expect(sent().slice(2)).toEqual([['c', 'd']]);
});

test('if items under way are bounded, a call waits until all of it may go', async () => {
  batched({ mostUnderWay: 15, underWayCounts: 'items' }).add(items(20));
  expect(sent().map(({ length }) => length)).toEqual([10]);
  await calls[0]!.end();
  expect(sent().map(({ length }) => length)).toEqual([10, 10]);
});

test('an item that does not matter any more when its turn comes is dropped', async () => {
  let isWanted = true;
  const all = batched({ mostUnderWay: 1, isWanted: () => isWanted });
  all.add([item('a', 0), item('b', 1)]);
  isWanted = false;
  await calls[0]!.end();
  expect([sent(), undone.at(-1)]).toEqual([[['a']], 0]);
});

test('items that failed wait for one timer, which takes longer each time until none has failed', async () => {
  const all = batched();
  all.add([item('a', 0), item('b', 1)]);
  for (const [attempt, delay] of [50, 100, 200, 250, 250].entries()) {
    for (const call of calls.slice(-2)) await call.fail();
    expect(undone.at(-1)).toBe(2);
    await clock.advance(delay - 1);
    expect(calls).toHaveLength(2 * (attempt + 1));
    await clock.advance(1);
    expect(calls).toHaveLength(2 * (attempt + 2));
  }
  expect(failures).toEqual([FAILURE]);
  for (const call of calls.slice(-2)) await call.end();
  expect(undone.at(-1)).toBe(0);
  all.add([item('c')]);
  await calls.at(-1)!.fail();
  expect(failures).toEqual([FAILURE, FAILURE]);
  await clock.advance(50);
  expect(sent().at(-1)).toEqual(['c']);
});

test('other items that succeed while one is retried do not shorten its wait', async () => {
  const all = batched();
  all.add([item('a')]);
  await calls[0]!.fail();
  all.add([item('b', 1)]);
  await clock.advance(50);
  await calls[1]!.end();
  await calls[2]!.fail();
  await clock.advance(99);
  expect(calls).toHaveLength(3);
  await clock.advance(1);
  expect(sent().at(-1)).toEqual(['a']);
  expect(failures).toEqual([FAILURE]);
});

test('items are not sent while the store can not be asked, and at once when it can', async () => {
  let isAvailable = false;
  const notAsked: string[] = [];
  const all = batched({
    isAvailable: () => isAvailable,
    onNotAsked: ({ name }) => notAsked.push(name),
  });
  all.add([item('a'), item('b', 1)]);
  await clock.advance(50);
  expect([calls.length, notAsked, undone.at(-1)]).toEqual([0, ['a', 'b', 'a', 'b'], 2]);
  isAvailable = true;
  all.retry();
  expect([sent(), failures]).toEqual([[['a'], ['b']], []]);
});

test('an item that is added again or removed does not wait for the timer', async () => {
  const all = batched();
  const [a, b] = [item('a', 0), item('b', 1)];
  all.add([a, b]);
  for (const call of calls.slice()) await call.fail();
  all.add([a]);
  expect(sent()[2]).toEqual(['a']);
  all.remove(b);
  expect([clock.isAwaited, undone.at(-1)]).toEqual([false, 0]);
});

test('all is idle when no call is due or under way, and a closed one does not retry', async () => {
  const all = batched({ mostPerCall: 1, mostUnderWay: 1 });
  all.add([item('a'), item('b')]);
  let isIdle = false;
  void all.idle().then(() => (isIdle = true));
  await calls[0]!.end();
  expect(isIdle).toBe(false);
  await calls[1]!.fail();
  expect(isIdle).toBe(true);
  all.close();
  expect(clock.isAwaited).toBe(false);
});
