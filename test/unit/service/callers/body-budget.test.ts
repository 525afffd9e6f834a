import {
  BODY_BYTES,
  BodyBudget,
  type BodyMemory,
} from '../../../../src/service/callers/body-budget.js';

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
