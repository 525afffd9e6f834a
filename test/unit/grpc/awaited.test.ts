import { Awaited, type EndReason } from '../../../src/grpc/awaited.js';
import { ManualClock } from '../../support/manual-clock.js';

let clock: ManualClock;
let ended: [what: string, reason: EndReason][];
let awaited: Awaited<string>;
beforeEach(() => {
  clock = new ManualClock(0);
  ended = [];
  awaited = new Awaited<string>({
    max: 3,
    maxBytes: 100,
    millis: 1000,
    clock,
    end: (what, reason) => ended.push([what, reason]),
  });
});

test('an item ends when its time is over, unless it was deleted', async () => {
  awaited.add('first');
  await clock.advance(400);
  awaited.add('second');
  awaited.add('gone');
  awaited.delete('gone');
  await clock.advance(600);
  expect(ended).toEqual([['first', 'too_late']]);
  await clock.advance(399);
  expect(ended).toHaveLength(1);
  await clock.advance(1);

  expect(ended[1]).toEqual(['second', 'too_late']);
  awaited.add('later');
  await clock.advance(1000);
  expect(ended[2]).toEqual(['later', 'too_late']);
});

test('an item beyond the maximum ends the first', () => {
  for (const what of ['first', 'second', 'third', 'fourth']) awaited.add(what);

  expect(ended).toEqual([['first', 'too_many']]);
});

test('bytes beyond the maximum end as many of the first items as necessary', () => {
  for (const what of ['first', 'second', 'third']) awaited.add(what);
  awaited.grow('first', 40);
  awaited.grow('second', 40);
  awaited.grow('third', 20);
  expect(ended).toEqual([]);
  awaited.grow('third', 50);
  expect(ended.map(([what]) => what)).toEqual(['first', 'second']);
  awaited.delete('third');
  awaited.add('fourth');
  awaited.grow('fourth', 100);

  expect(ended).toHaveLength(2);
});

test('no item ends after close', async () => {
  awaited.add('first');
  awaited.close();
  await clock.advance(2000);

  expect(ended).toEqual([]);
});
