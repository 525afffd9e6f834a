import { type Counts, FrequentLog } from '../../../src/common/frequent-log.js';
import { ManualClock } from '../../support/manual-clock.js';

let clock: ManualClock;
let lines: Counts<'a' | 'b' | 'c'>[];
let log: FrequentLog<'a' | 'b' | 'c'>;
beforeEach(() => {
  clock = new ManualClock(0);
  lines = [];
  log = new FrequentLog(clock, (counts) => lines.push(counts));
});

test('the first event is logged at once', () => {
  log.note('a');
  expect(lines).toEqual([{ a: 1 }]);
});

test('all other events within a second share a line at its end, even if no more follow', async () => {
  for (let i = 0; i < 100; i += 1) log.note('a');
  log.note('b');
  await clock.advance(999);
  expect(lines).toEqual([{ a: 1 }]);
  await clock.advance(1);
  expect(lines).toEqual([{ a: 1 }, { a: 99, b: 1 }]);
  log.note('c');
  await clock.advance(999);
  expect(lines).toHaveLength(2);
  await clock.advance(1);
  expect(lines[2]).toEqual({ c: 1 });
});

test('nothing is logged while nothing happens, and the next event is logged at once', async () => {
  log.note('a');
  await clock.advance(100_000);
  expect(lines).toHaveLength(1);
  log.note('a');
  expect(lines).toEqual([{ a: 1 }, { a: 1 }]);
});

test('close logs the events of the last second, and leaves no timer', async () => {
  log.note('a');
  log.note('a');
  log.close();
  expect(lines).toEqual([{ a: 1 }, { a: 1 }]);
  await clock.advance(100_000);
  expect(lines).toHaveLength(2);
});
