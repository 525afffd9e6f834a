import { ResetBounds } from '../../../src/grpc/reset-bounds.js';
import { ManualClock } from '../../support/manual-clock.js';

const OF_ADDRESS = 5000;
const OF_CONNECTION = 1000;

let clock: ManualClock;
let bounds: ResetBounds;
beforeEach(() => {
  clock = new ManualClock(0);
  bounds = new ResetBounds(clock);
});

/** How many resets of an address a new connection may have before it has to end. */
function resetsOfConnection(address: string): number {
  const connection = bounds.connection(address);
  let resets = 0;
  while (bounds.allows(connection)) resets += 1;
  return resets;
}

/** Resets streams of an address on new connections until its bound is reached. */
function exhaust(address: string): void {
  for (let resets = 0; resets < OF_ADDRESS;) resets += resetsOfConnection(address) + 1;
}

test('a connection may reset as many streams as HTTP/2 lets it', () => {
  expect(resetsOfConnection('a')).toBe(OF_CONNECTION);
});

test('connections of an address that is beyond its bound end soon, and those of others do not', () => {
  exhaust('a');

  expect(resetsOfConnection('a')).toBe(10);
  expect(resetsOfConnection('b')).toBe(OF_CONNECTION);
});

test('an address that is beyond its bound gets four connections a second, until 10 s after', async () => {
  expect(bounds.admits('a')).toBe(true);
  exhaust('a');
  resetsOfConnection('a');
  const admitted: number[] = [];
  for (let second = 0; second < 2; second += 1) {
    let count = 0;
    for (let millis = 0; millis < 1000; millis += 10) {
      if (bounds.admits('a')) count += 1;
      await clock.advance(10);
    }
    admitted.push(count);
  }

  expect(admitted).toEqual([4, 4]);
  expect(bounds.admits('b')).toBe(true);
  await clock.advance(8000);
  expect([bounds.admits('a'), bounds.admits('a')]).toEqual([true, true]);
});

test('a second without resets makes room for 500 more', async () => {
  exhaust('a');
  await clock.advance(1000);

  expect(resetsOfConnection('a')).toBe(500);
});
