import { setImmediate as nextTurn } from 'node:timers/promises';

import { ApprovalsInSlices } from '../../../src/limiter/approvals-in-slices.js';
import { CallerPresence } from '../../../src/limiter/caller-presence.js';
import { Waiter } from '../../../src/limiter/waiter.js';

const SLICE = 32;

let approvals: ApprovalsInSlices;
let waiters: Waiter[];
let givenBack: string[];
beforeEach(() => {
  approvals = new ApprovalsInSlices();
  waiters = [];
  givenBack = [];
});

function approve(count: number): Waiter[] {
  const added = Array.from({ length: count }, (_, i) => new Waiter(String(waiters.length + i)));
  waiters.push(...added);
  for (const waiter of added) {
    approvals.approve(waiter, () => givenBack.push(waiter.requestId));
  }
  return added;
}

const told = (): string[] =>
  waiters.filter(({ decided }) => decided).map(({ requestId }) => requestId);
const firstIds = (count: number): string[] => waiters.slice(0, count).map((w) => w.requestId);

test('a few are told at once, and that they have waited', async () => {
  approve(3);
  expect(told()).toEqual(['0', '1', '2']);
  expect(await waiters[0]!.decision).toEqual({
    outcome: 'approved',
    requestId: '0',
    waited: true,
  });
});

test('many are told in slices, in their order, one in each turn of the event loop', async () => {
  approve(2 * SLICE + 1);
  expect(told()).toEqual(firstIds(SLICE));
  await nextTurn();
  expect(told()).toEqual(firstIds(2 * SLICE));
  await nextTurn();
  expect(told()).toEqual(firstIds(2 * SLICE + 1));
});

test('those approved later in the turn come after those who are left', async () => {
  approve(SLICE + 1);
  approve(1);
  expect(told()).toEqual(firstIds(SLICE));
  await nextTurn();
  expect(told()).toEqual(firstIds(SLICE + 2));
});

test('later turns have slices of their own', async () => {
  approve(SLICE);
  await nextTurn();
  await nextTurn();
  approve(SLICE);
  expect(told()).toEqual(firstIds(2 * SLICE));
});

test('an approval whose client leaves before it is told is given back', async () => {
  approve(SLICE);
  const [left] = approve(1);
  const caller = new CallerPresence();
  left!.withdrawOnDisconnect(caller, () => undefined);
  caller.disconnect();
  expect(givenBack).toEqual([]);
  await nextTurn();
  expect(givenBack).toEqual([left!.requestId]);
});
