import { CallBudget } from '../../../src/grpc/call-budget.js';

const KIB = 1024;
const NO_ROOM = expect.objectContaining({ code: 'NO_ROOM_FOR_BODY' }) as unknown;

let budget: CallBudget;
let ends: (() => void)[];
beforeEach(() => {
  budget = new CallBudget();
  ends = [];
});

/** Begins a call, which lasts until the test ends it. */
function begin(caller: string, messageBytes: number): Promise<void> {
  return budget.within(caller, messageBytes, () => new Promise((resolve) => ends.push(resolve)));
}

function beginMany(caller: string, count: number, messageBytes: number): Promise<void>[] {
  return Array.from({ length: count }, () => begin(caller, messageBytes));
}

test('a caller has 16 MiB, with 16 KiB for each call besides its message', async () => {
  const begun = beginMany('one', 1024, 0);
  await expect(begin('one', 0)).rejects.toEqual(NO_ROOM);
  ends.shift()!();
  await begun[0];
  const next = begin('one', 0);
  for (const end of ends) end();

  await Promise.all([...begun, next]);
});

test('all callers have 64 MiB together', async () => {
  const begun = ['a', 'b', 'c', 'd'].flatMap((caller) => beginMany(caller, 64, 240 * KIB));
  await expect(begin('e', 0)).rejects.toEqual(NO_ROOM);
  for (const end of ends.splice(0)) end();
  await Promise.all(begun);
  const next = begin('e', 0);
  for (const end of ends) end();

  await next;
});
