import { brokenOrder } from './order.js';
import { approved, granted, joined, run, withdrawn } from './sample-evidence.js';

const twoWait = [run(1, joined('first', 10)), run(2, joined('second', 20))];

test('waiters that are served in the order of arrival break nothing', () => {
  const runs = [...twoWait, run(3, granted('first', 1003)), run(4, granted('second', 1004))];
  expect(brokenOrder({ runs })).toEqual([]);
});

test('a waiter that is served before an earlier one overtakes it', () => {
  const runs = [...twoWait, run(3, granted('second', 1003))];
  expect(brokenOrder({ runs })).toEqual(['fixed: second (ticket 20) overtook first at 3']);
});

test('two that one script serves may come in any order in it', () => {
  const runs = [...twoWait, run(3, granted('second', 1003), granted('first', 1003))];
  expect(brokenOrder({ runs })).toEqual([]);
});

test('nobody overtakes one that has left', () => {
  const runs = [...twoWait, run(3, withdrawn('first')), run(4, granted('second', 1004))];
  expect(brokenOrder({ runs })).toEqual([]);
});

test('a newcomer that is approved while others wait passes them', () => {
  const runs = [...twoWait, run(3, approved('newcomer'))];
  expect(brokenOrder({ runs })).toEqual([
    'fixed: newcomer was approved at once while first,second waited at 3',
  ]);
});

test('a newcomer passes nobody who joins in the same script, and nobody of another key', () => {
  const runs = [
    run(1, approved('newcomer'), joined('first', 10)),
    { ...run(2, approved('other')), key: 'bucket' },
  ];
  expect(brokenOrder({ runs })).toEqual([]);
});

test('a ticket that is not later than the one before is found', () => {
  const runs = [run(1, joined('first', 10)), run(2, joined('second', 10))];
  expect(brokenOrder({ runs })).toEqual([expect.stringContaining('second got ticket 10 after 10')]);
});

test('one that is put back has its old ticket, and is in its old place again', () => {
  const runs = [...twoWait, run(3, withdrawn('first')), run(4, joined('first', 10))];
  expect(brokenOrder({ runs })).toEqual([]);
  expect(brokenOrder({ runs: [...runs, run(5, granted('second', 1005))] })).toHaveLength(1);
});
